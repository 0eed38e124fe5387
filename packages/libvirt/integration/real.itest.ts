import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { privateDaemonObstacle, startPrivateDaemon } from '../src/testing/index.ts';
import type { PrivateDaemonOptions } from '../src/testing/index.ts';
import { test } from 'vitest';
import type { Harness } from './harness.ts';
import { realOnlySuite } from './real-only.ts';
import { libvirtSuite } from './suite.ts';

async function startReal(options: PrivateDaemonOptions): Promise<Harness> {
  const daemon = await startPrivateDaemon(options);
  return {
    connectOptions: { uri: daemon.uri, socketPath: daemon.socketPath },
    directory: daemon.directory,
    kill: () => daemon.kill(),
    start: () => daemon.start(),
    pause: () => daemon.pause(),
    resume: () => daemon.resume(),
    killQemu: (name) => process.kill(qemuPid(daemon.directory, name), 'SIGKILL'),
    [Symbol.asyncDispose]: () => daemon[Symbol.asyncDispose](),
  };
}

/** The pid of a guest of this daemon, by the pid file that the daemon keeps for it. */
function qemuPid(directory: string, name: string): number {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  const file = files.find((path) => path.endsWith(`/${name}.pid`));
  if (file === undefined) throw new Error(`no pid file of ${name} below ${directory}`);
  return Number(readFileSync(join(directory, file), 'utf8'));
}

const KINDS: readonly (readonly [string, PrivateDaemonOptions])[] = [
  ['libvirtd, system', {}],
  ['libvirtd, session of another user', { mode: 'session' }],
  ['virtqemud, system', { program: 'virtqemud' }],
];

for (const [title, options] of KINDS) {
  const missing = privateDaemonObstacle(options.program);
  if (missing === undefined) libvirtSuite({ title, start: () => startReal(options) });
  // virtqemud is in no package of Debian 12; libvirtd must be there for this file to prove anything.
  else if (options.program === undefined) test.skip(`${title}: ${missing}`, () => undefined);
}

if (privateDaemonObstacle() === undefined) realOnlySuite();
