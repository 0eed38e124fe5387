import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RELEASE_LINES, renderHtml, SCENARIOS } from '@virtwire/compat';
import type { Cell, CellResult } from '@virtwire/compat';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const BROWSER = '/usr/bin/chromium';
const canRun = existsSync(BROWSER);

const RESULTS: readonly CellResult[] = [
  { kind: 'pass' },
  { kind: 'difference', reason: 'no ResetVirtualMachine: virtctl reset fails until the VM has been restarted' },
  { kind: 'notBuilt', missingPart: 'live migration, source side (handler)' },
  { kind: 'fail', reason: `the condition says: ${'a-word-without-any-break'.repeat(12)}` },
];

/** Every scenario with every release both ways, with each result somewhere. */
const CELLS: readonly Cell[] = RELEASE_LINES.flatMap((line, row) =>
  SCENARIOS.flatMap(({ name }, column): readonly Cell[] => {
    const result = RESULTS[(row + column) % RESULTS.length] ?? { kind: 'pass' };
    const rest = { scenario: name, result, durationMs: 12, trace: ['1 ms first', '2 ms <second>'] };
    return [
      { ...rest, pair: { handler: 'new', launcher: line } },
      { ...rest, pair: { handler: line, launcher: 'new' } },
    ];
  }),
);

/** Chromium's number for each colour scheme, and the colour of the page. */
const THEMES = {
  light: { setting: 1, background: 'rgb(255, 255, 255)' },
  dark: { setting: 0, background: 'rgb(17, 23, 29)' },
} as const;
type Theme = keyof typeof THEMES;

interface Look {
  readonly scrollWidth: number;
  readonly clientWidth: number;
  readonly outside: string[];
  readonly requests: string[];
  readonly overview: string[];
  readonly before: number;
  readonly after: number;
  readonly reasons: string[];
  readonly signs: string[];
  /** Tables that have to be scrolled sideways before anything is opened. */
  readonly sideways: number;
  /** Texts with less contrast than 4.5 to 1, the limit of WCAG's level AA. */
  readonly faint: string[];
  readonly background: string;
}

/** Shows the page in a frame of some width, clicks on every result that has a reason, and tells what came of it. */
function frame(width: number): string {
  return `<iframe id="page" src="page.html" style="width:${width}px;height:900px;border:0"></iframe><script>
onload = () => {
  const { document: d, performance: p } = page.contentWindow;
  const root = d.documentElement;
  const isShown = (e) => e.checkVisibility() && e.getBoundingClientRect().height > 0;
  const reasons = [...d.querySelectorAll('.reason')];
  const before = reasons.filter(isShown).length;
  const overview = [...d.querySelectorAll('.overview td:not(.none)')].filter(isShown).map((e) => e.innerText);
  const sideways = [...d.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length;
  for (const summary of d.querySelectorAll('summary')) summary.click();
  const rgb = (color) => color.match(/[0-9.]+/g).map(Number);
  const luminance = (color) => rgb(color).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const style = (e) => page.contentWindow.getComputedStyle(e);
  const behind = (e) => {
    const { backgroundColor } = style(e);
    return rgb(backgroundColor)[3] === 0 && e.parentElement ? behind(e.parentElement) : backgroundColor;
  };
  const contrast = (e) => {
    const [dark, light] = [luminance(style(e).color), luminance(behind(e))].toSorted((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== '');
  const faint = [...d.querySelectorAll('body *')].filter((e) => !e.closest('.none') && isShown(e) && hasText(e))
    .filter((e) => contrast(e) < 4.5).map((e) => e.outerHTML.slice(0, 60));
  const box = (e) => e.getBoundingClientRect();
  const outside = [...d.querySelectorAll('body *')].filter((e) => !e.closest('.scroll') && isShown(e))
    .filter((e) => box(e).left < -1 || box(e).right > root.clientWidth + 1);
  document.title = JSON.stringify({
    scrollWidth: root.scrollWidth, clientWidth: root.clientWidth, overview, before, sideways,
    faint: [...new Set(faint)], background: style(d.body).backgroundColor,
    after: reasons.filter(isShown).length, reasons: [...new Set(reasons.map((e) => e.innerText))],
    signs: [...new Set([...d.querySelectorAll('.matrix td:not(.none) span, summary')].map((e) => e.innerText))],
    outside: outside.map((e) => e.outerHTML.slice(0, 80)), requests: p.getEntriesByType('resource').map((r) => r.name),
  });
};
</script>`;
}

const unescape = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');

describe.skipIf(!canRun)(
  `the matrix' page in a browser${canRun ? '' : ': needs chromium, run setup.sh --with-tests'}`,
  () => {
    const dir = mkdtempSync(join(tmpdir(), 'e2e-matrix-'));
    const facts = { startedAt: '2026-03-01T12:00:00Z', durationMs: 1_500, subjects: { handler: 'virtwire' } };
    beforeAll(() => writeFileSync(join(dir, 'page.html'), renderHtml(CELLS, facts, SCENARIOS)));
    afterAll(() => rmSync(dir, { recursive: true, force: true }));

    async function look(width: number, theme: Theme): Promise<Look> {
      writeFileSync(join(dir, 'frame.html'), frame(width));
      const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--allow-file-access-from-files'];
      const profile = `--user-data-dir=${join(dir, 'profile')}`;
      const scheme = `--blink-settings=preferredColorScheme=${THEMES[theme].setting}`;
      const args = [
        ...flags,
        profile,
        scheme,
        '--virtual-time-budget=5000',
        '--dump-dom',
        `file://${join(dir, 'frame.html')}`,
      ];
      const { stdout } = await promisify(execFile)(BROWSER, args, { timeout: 120_000, maxBuffer: 64 << 20 });
      return JSON.parse(unescape(/<title>(.*)<\/title>/s.exec(stdout)?.[1] ?? '')) as Look;
    }

    test.each<[string, number, Theme]>([
      ['a desktop', 1_280, 'light'],
      ['a desktop', 1_280, 'dark'],
      ['a large desktop', 1_920, 'light'],
      ['a large desktop', 1_920, 'dark'],
      ['a phone', 390, 'light'],
    ])('on %s of %i px, %s, all is there to read, and every reason opens by a click', async (_title, width, theme) => {
      const seen = await look(width, theme);
      expect(seen.background).toBe(THEMES[theme].background);
      expect(seen.sideways).toBe(0);
      expect(seen.faint).toEqual([]);
      expect(seen.clientWidth).toBeGreaterThan(width - 20); // a scroll bar may take some
      expect(seen.scrollWidth).toBeLessThanOrEqual(seen.clientWidth);
      expect(seen.outside).toEqual([]);
      expect(seen.overview).toHaveLength(2 * RELEASE_LINES.length);
      for (const text of seen.overview)
        expect(text).toMatch(/✓ \d+ pass\s+≠ \d+ differs\s+○ \d+ not built\s+✗ \d+ FAIL/);
      expect(seen.before).toBe(0);
      expect(seen.after).toBe(CELLS.filter(({ result }) => result.kind !== 'pass').length);
      expect(seen.reasons).toContain('missing: live migration, source side (handler)');
      expect(seen.signs.toSorted()).toEqual(['✓ pass', '✗ FAIL', '≠ differs', '○ not built'].toSorted());
      expect(seen.requests).toEqual([]);
    });
  },
);
