// Runs the tests of one project and leaves a JSON report, from which the summary counts: also when nx replays the
// run from its cache, since the report is an output of the target.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const [project = '', kind = '', ...dirs] = process.argv.slice(2);
if (project === '' || !['unit', 'integration'].includes(kind) || dirs.length === 0) {
  process.stderr.write('usage: vitest.ts PROJECT unit|integration DIR...\n');
  process.exit(2);
}
const root = resolve(import.meta.dirname, '../..');
// The very path that nx.json names as output, so that a replayed run has its report too.
const report = resolve(root, 'reports', kind, `${project}.json`);
mkdirSync(dirname(report), { recursive: true });
const { status } = spawnSync(
  process.execPath,
  [
    resolve(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--config=vitest.config.ts',
    `--project=${kind}`,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...dirs,
  ],
  { cwd: root, stdio: 'inherit' },
);
process.exit(status ?? 1);
