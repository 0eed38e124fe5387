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
  for (const summary of d.querySelectorAll('summary')) summary.click();
  const box = (e) => e.getBoundingClientRect();
  const outside = [...d.querySelectorAll('body *')].filter((e) => !e.closest('.scroll') && isShown(e))
    .filter((e) => box(e).left < -1 || box(e).right > root.clientWidth + 1);
  document.title = JSON.stringify({
    scrollWidth: root.scrollWidth, clientWidth: root.clientWidth, overview, before,
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

    async function look(width: number): Promise<Look> {
      writeFileSync(join(dir, 'frame.html'), frame(width));
      const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--allow-file-access-from-files'];
      const profile = `--user-data-dir=${join(dir, 'profile')}`;
      const args = [...flags, profile, '--virtual-time-budget=5000', '--dump-dom', `file://${join(dir, 'frame.html')}`];
      const { stdout } = await promisify(execFile)(BROWSER, args, { timeout: 120_000, maxBuffer: 64 << 20 });
      return JSON.parse(unescape(/<title>(.*)<\/title>/s.exec(stdout)?.[1] ?? '')) as Look;
    }

    test.each([
      ['a desktop', 1_280],
      ['a phone', 390],
    ])('on %s every pair tells its four counts in words, and every reason opens by a click', async (_title, width) => {
      const seen = await look(width);
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
