import { unwrap } from '@virtwire/shared-proto';
import { parseDomainJson, renderVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { createVmi, hasGuest, provideKernel } from './support/guest.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-00000000000d';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID, '--grace-period-seconds', '40'];
const LIMIT = { timeout: 240_000 };

/** The variable with a VMI as people write it. */
function standaloneVmi(withGuest: boolean, name = 'vm1'): string {
  return `STANDALONE_VMI=${stringify(JSON.parse(renderVmiJson(createVmi({ name, uid: UID, withGuest }))))}`;
}

test.runIf(hasGuest)(
  'a guest boots from a VMI in the environment, without a handler, and is powered down by SIGTERM',
  LIMIT,
  async () => {
    await using pod = await startLauncherPod(FLAGS, { env: [standaloneVmi(true)], provide: provideKernel });
    await pod.waitForLog('Standalone mode: syncing VMI');
    await pod.waitForLog('Domain started.');
    await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
    using client = await pod.connect();
    const domain = parseDomainJson(unwrap(await client.getDomain()).domain);
    expect(domain.Status.Status).toBe('Running');
    expect(domain.Spec.Metadata.KubeVirt.UID).toBe(UID);
    const ping = await client.guestPing({ domainName: 'default_vm1', timeoutSeconds: 1 });
    expect(ping.ok).toBe(true);
    process.kill(pod.launcherPid(), 'SIGTERM');
    await pod.waitForLog('virt-handler did not react to the graceful shutdown, powering the guest down');
    await eventually('the end of QEMU', () => pod.qemuPid() === undefined);
    // Nobody hears of the end, and the launcher waits for that no longer than it may.
    await pod.waitForLog('Timed out waiting for final delete notification after calling kill.');
    expect(await pod.exited).toBe(0);
    expect(pod.output()).not.toContain('Grace Period expired, shutting down.');
  },
);

test.each([
  [
    'is of another launcher',
    standaloneVmi(false, 'other'),
    'panic: STANDALONE_VMI has the name "other", but the launcher was started with --name "vm1"',
  ],
  ['cannot start', standaloneVmi(true), 'panic: Failed to sync VMI, quitting: '],
])('a VMI in the environment that %s ends the launcher with the reason', LIMIT, async (_title, variable, message) => {
  await using pod = await startLauncherPod(FLAGS, { env: [variable] });
  expect(await pod.exited).toBe(2);
  expect(pod.output()).toContain(message);
});
