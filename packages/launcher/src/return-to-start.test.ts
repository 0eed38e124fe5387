import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { connectCmd, unwrap } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { eventually, startLauncherOnFake } from './testing/launcher-on-fake.ts';
import type { LauncherOnFake } from './testing/launcher-on-fake.ts';

const ROUNDS = 200;
/** Far less than one per round. */
const FEW = 10;
const AGENT = {
  'guest-exec': () => ({ pid: 7 }),
  'guest-exec-status': () => ({ exited: true, exitcode: 0 }),
  'guest-fsfreeze-status': () => 'thawed',
};

/** What keeps this process busy, by kind: sockets, pipes, timers, watched files, requests; and its open files. */
function resources(): Readonly<Record<string, number>> {
  const kinds: Record<string, number> = { files: readdirSync('/proc/self/fd').length };
  for (const kind of process.getActiveResourcesInfo()) kinds[kind] = (kinds[kind] ?? 0) + 1;
  return kinds;
}

/** A handler that comes, does what makes the launcher wait for something later, and goes. */
async function visit({ root, request }: LauncherOnFake): Promise<void> {
  using client = await connectCmd(join(root, 'share/sockets/launcher-sock'));
  unwrap(await client.pauseVirtualMachine(request));
  unwrap(await client.unpauseVirtualMachine(request));
  const exec = { domainName: 'ns1_vm1', Command: 'true', Args: [], timeoutSeconds: 1 };
  const results = await Promise.all([
    client.syncVirtualMachine(request),
    client.getDomain(),
    client.getDomainStats(),
    client.exec(exec),
    client.guestPing(exec),
    client.freezeVirtualMachine({ vmi: request.vmi, unfreezeTimeoutSeconds: 3_600 }),
    client.cancelVirtualMachineMigration(request),
    client.softRebootVirtualMachine(request),
  ]);
  expect(results.map(({ ok }) => ok)).toEqual(results.map(() => true));
}

test(`FM-11.1 ${ROUNDS} handlers that come, call and go leave nothing open`, { timeout: 120_000 }, async () => {
  await using launcher = await startLauncherOnFake([], {}, { hasAgent: true, agent: AGENT }, { isRecorded: false });
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  await visit(launcher);
  const before = resources();
  for (let i = 0; i < ROUNDS; i++) await visit(launcher);
  // What one visit leaves for a moment does not add up.
  await eventually('the same rest', () => {
    const left = resources();
    return Object.keys(left).every((kind) => (left[kind] ?? 0) <= (before[kind] ?? 0) + FEW);
  });
});
