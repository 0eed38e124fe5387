import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { packLauncher } from './support/packed-launcher.ts';
import { startLauncherPod } from './support/sandbox.ts';

const PACKAGE = join(import.meta.dirname, '..');
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', '7a1b2c3d-0000-4000-8000-00000000000e'];
const LOG_CALL = /\.(?:trace|debug|info|warn|error|fatal)\(|startSpan\(/;

/** Source lines at a place; more than one when files of several packages have the name. */
function linesAt(pos: string): string[] {
  const [file = '', line = ''] = pos.split(':');
  const found = globSync('*/src/**/*.ts', { cwd: join(PACKAGE, '..') }).filter((path) => basename(path) === file);
  return found.map((path) => readFileSync(join(PACKAGE, '..', path), 'utf8').split('\n')[Number(line) - 1] ?? '');
}

test('the bundle runs, and its log lines name the places in the sources', { timeout: 120_000 }, async () => {
  using launcher = packLauncher();
  await using pod = await startLauncherPod(FLAGS, launcher);
  await pod.waitUntilReady();
  await pod.waitForLog('Marked as ready');
  process.kill(pod.launcherPid(), 'SIGTERM');
  expect(await pod.exited).toBe(0);
  const own = pod.logs.filter(({ subcomponent }) => subcomponent === undefined);
  expect(own.length).toBeGreaterThan(8);
  const astray = own.filter(({ pos }) => !linesAt(String(pos)).some((line) => LOG_CALL.test(line)));
  expect(astray.map(({ pos, msg }) => [pos, msg])).toEqual([]);
});
