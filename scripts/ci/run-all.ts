// Every check and every test, in the order in which a fault is cheapest to notice. Goes on after a failed step, so that
// one run shows all that is wrong, and ends with the line that CI reads: `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { addCounts, countMatrix, countReport, countSteps, isGood } from './counts.ts';
import type { MatrixReport, Report } from './counts.ts';

const root = resolve(import.meta.dirname, '../..');
const bin = (name: string): string => resolve(root, 'node_modules/.bin', name);
const source = ['-C', '@virtwire/source'];

const steps: readonly (readonly [title: string, command: string, args: readonly string[]])[] = [
  ['generated code is current', bin('nx'), ['run-many', '-t', 'gen-check']],
  ['proto files lint', bin('buf'), ['lint', 'proto']],
  ['types', bin('nx'), ['run-many', '-t', 'typecheck']],
  ['lint, with the layer rules', bin('nx'), ['run-many', '-t', 'lint']],
  ['format', bin('prettier'), ['--check', '--log-level', 'warn', '.']],
  ['no dead code, no undeclared dependency', bin('knip'), []],
  ['test data is that of its source', process.execPath, [...source, 'scripts/testdata/refresh.ts', '--check']],
  ['build and API reports', bin('nx'), ['run-many', '-t', 'build', 'api']],
  ['unit tests', bin('nx'), ['run-many', '-t', 'test']],
  ['compatibility matrix', 'sh', ['scripts/compat.sh', '--quiet']],
  ['integration tests', bin('nx'), ['run-many', '-t', 'integration', '--parallel=1']],
];

/** Steps that leave reports of their tests. */
const TESTS: ReadonlySet<string> = new Set(['unit tests', 'compatibility matrix', 'integration tests']);

function run(title: string, command: string, args: readonly string[]): boolean {
  process.stdout.write(`\n=== ${title}\n`);
  const startedAt = Date.now();
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, NX_DAEMON: 'false', NX_TUI: 'false', FORCE_COLOR: '0' },
  });
  const seconds = ((Date.now() - startedAt) / 1_000).toFixed(0);
  process.stdout.write(`=== ${title}: ${status === 0 ? 'ok' : 'FAILED'} (${seconds} s)\n`);
  return status === 0;
}

rmSync(resolve(root, 'reports'), { recursive: true, force: true });
const results = steps.map(([title, command, args]) => ({
  title,
  isOk: run(title, command, args),
  isTests: TESTS.has(title),
}));
const failedSteps = results.filter((step) => !step.isOk).map(({ title }) => title);
const read = (file: string): unknown => JSON.parse(readFileSync(resolve(root, file), 'utf8'));
const MATRIX = 'reports/compat/matrix.json';
const reports = globSync('reports/**/*.json', { cwd: root, exclude: [MATRIX] });
// A matrix that was not finished has no report, and its step has failed.
const matrix = addCounts(globSync(MATRIX, { cwd: root }).map((file) => countMatrix(read(file) as MatrixReport)));
const tests = addCounts([...reports.map((file) => countReport(read(file) as Report)), matrix]);
const counts = addCounts([tests, countSteps(results, tests.failed)]);
const isCi = process.env['CI'] === 'true';
if (failedSteps.length > 0) process.stdout.write(`\nFailed: ${failedSteps.join('; ')}\n`);
if (isCi && counts.skipped > matrix.skipped) process.stdout.write('\nSkipped tests count as failures on CI.\n');
process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
process.exit(isGood(counts, failedSteps.length, isCi, matrix.skipped) ? 0 : 1);
