import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { renderTimelineHtml } from '@virtwire/telemetry';
import type { Timeline } from '@virtwire/telemetry';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const BROWSER = '/usr/bin/chromium';
const canRun = existsSync(BROWSER);

const entry = (atMs: number, who: string, what: string, durationMs?: number) => ({
  ...{ atMs, who, where: `${who}.ts:1`, what },
  ...(durationMs === undefined ? {} : { durationMs }),
});

const TIMELINE: Timeline = {
  namespace: 'a-namespace-with-a-rather-long-name',
  name: 'a-virtual-machine-with-a-name-as-long-as-they-come',
  uid: '13972a3f-8d4c-487b-bc4c-1aa2af8c67df',
  handoverAt: '2026-11-29T22:32:42.332496Z',
  entries: [
    entry(-733, 'launcher', 'connect to libvirt', 63),
    entry(-615, 'launcher', 'launcher ready'),
    entry(0, 'handler', 'hand-over'),
    entry(46, 'handler', 'SyncVirtualMachine', 471),
    entry(428, 'launcher', 'start QEMU', 367),
    entry(543, 'handler', 'VMI Running'),
    entry(16_283, 'handler', 'AgentConnected'),
  ],
};

interface Look {
  readonly scrollWidth: number;
  readonly clientWidth: number;
  readonly hidden: string[];
  readonly requests: string[];
  readonly text: string;
}

/** Shows a page in a frame of some width and tells what came of it. */
function frame(width: number): string {
  return `<iframe id="page" src="page.html" style="width:${width}px;height:900px;border:0"></iframe><script>
onload = () => {
  const { document: d, performance: p } = page.contentWindow;
  const root = d.documentElement;
  const outside = [...d.querySelectorAll('body *')].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.left < -1 || box.right > root.clientWidth + 1);
  });
  document.title = JSON.stringify({
    scrollWidth: root.scrollWidth, clientWidth: root.clientWidth, text: d.body.innerText,
    hidden: outside.map((e) => e.outerHTML.slice(0, 80)), requests: p.getEntriesByType('resource').map((r) => r.name),
  });
};
</script>`;
}

describe.skipIf(!canRun)(
  `the timeline's page in a browser${canRun ? '' : ': needs chromium, run setup.sh --with-tests'}`,
  () => {
    const dir = mkdtempSync(join(tmpdir(), 'e2e-page-'));
    beforeAll(() => writeFileSync(join(dir, 'page.html'), renderTimelineHtml(TIMELINE)));
    afterAll(() => rmSync(dir, { recursive: true, force: true }));

    async function look(width: number): Promise<Look> {
      writeFileSync(join(dir, 'frame.html'), frame(width));
      const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--allow-file-access-from-files'];
      const profile = `--user-data-dir=${join(dir, 'profile')}`;
      const args = [...flags, profile, '--virtual-time-budget=5000', '--dump-dom', `file://${join(dir, 'frame.html')}`];
      const { stdout } = await promisify(execFile)(BROWSER, args, { timeout: 120_000 });
      const title = /<title>(.*)<\/title>/s.exec(stdout)?.[1] ?? '';
      const json = title.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
      return JSON.parse(json) as Look;
    }

    test.each([
      ['a desktop', 1_280],
      ['a phone', 390],
    ])('on %s nothing sticks out and every step can be read', async (_title, width) => {
      const seen = await look(width);
      expect(seen.clientWidth).toBeGreaterThan(width - 20); // a scroll bar may take some
      expect(seen.scrollWidth).toBeLessThanOrEqual(seen.clientWidth);
      expect(seen.hidden).toEqual([]);
      for (const { what } of TIMELINE.entries) expect(seen.text).toContain(what);
    });

    test('it is one file: nothing else is fetched', async () => {
      expect((await look(1_280)).requests).toEqual([]);
    });
  },
);
