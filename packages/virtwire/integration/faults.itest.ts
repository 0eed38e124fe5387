import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findLeftovers, runTool, takeSnapshot } from '../src/index.ts';
import type { Snapshot } from '../src/index.ts';
import { openEventFiles } from '../src/state/event-files.ts';
import { countIn, ensureGuest, missingForVms, readLog, until } from './support/machine.ts';
import { isAlive, launcherOf, qemuOf, treeOf } from './support/processes.ts';
import { TestNode } from './support/test-node.ts';
import { untilAgent, untilFinal, untilRunning } from './support/vm.ts';

const missing = missingForVms();
const FAILURE_NOTICED_MS = 2_000;
/** A slow machine runs the tests' own work late; the limit itself is the product's. */
const SLACK_MS = 500;

describe.skipIf(missing !== undefined)(
  `a VM that something happens to${missing === undefined ? '' : `: ${missing}`}`,
  () => {
    let host: TestNode;
    let before: Snapshot = [];

    beforeAll(async () => {
      ensureGuest();
      before = await takeSnapshot(runTool);
      host = await TestNode.open();
    });
    afterAll(async () => {
      await host[Symbol.asyncDispose]();
    });

    /** What a VM left behind once it was removed. */
    async function leftOf(podUid: string): Promise<string[]> {
      return findLeftovers(before, await takeSnapshot(runTool), [podUid]);
    }

    test('QEMU is killed: the VM is Failed within 2 s, with the reason, and nothing is left', async () => {
      const key = await host.start({ name: 'qemu-killed' });
      await untilRunning(host.node, key);
      const { pid, podUid } = host.sandbox(key);
      const qemu = await until('QEMU', 10_000, () => qemuOf(pid));
      const killedAt = Date.now();
      process.kill(qemu, 'SIGKILL');
      const vmi = await untilFinal(host.node, key);
      expect(Date.now() - killedAt).toBeLessThan(FAILURE_NOTICED_MS + SLACK_MS);
      expect(vmi.status?.phase).toBe('Failed');
      const events = openEventFiles(host.scratch.layout.eventsDir);
      const told = await until('the reason', 2_000, () => events.read(key).find(({ type }) => type === 'Warning'));
      expect(told).toMatchObject({ reason: 'Stopped', message: 'The VirtualMachineInstance crashed.' });
      await host.stop(key);
      expect(await leftOf(podUid)).toEqual([]);
    });

    test.each([
      ['the launcher is killed', 'launcher-killed', launcherOf],
      ['all of its sandbox is killed', 'sandbox-killed', (pid: number) => pid],
    ])('%s: the VM is Failed within 2 s, and nothing is left', async (_title, name, victimOf) => {
      const key = await host.start({ name, network: 'masquerade' });
      await untilRunning(host.node, key);
      const { pid, podUid } = host.sandbox(key);
      const tree = treeOf(pid).map((process) => process.pid);
      const killedAt = Date.now();
      process.kill(victimOf(pid), 'SIGKILL');
      const vmi = await untilFinal(host.node, key);
      expect(vmi.status?.phase).toBe('Failed');
      expect(Date.now() - killedAt).toBeLessThan(FAILURE_NOTICED_MS + SLACK_MS);
      await until('the end of QEMU and libvirt', 10_000, () => !tree.some(isAlive));
      await host.stop(key);
      expect(await leftOf(podUid)).toEqual([]);
    });

    test('the guest powers itself off: the VM is Succeeded', async () => {
      const key = await host.start({ name: 'poweroff', kernelArgs: 'virtwire.poweroff=1' });
      const vmi = await untilFinal(host.node, key);
      expect(vmi.status?.phase).toBe('Succeeded');
      await host.stop(key);
    });

    test('a guest that ignores the power button is killed after its grace period', async () => {
      const key = await host.start({ name: 'stubborn', kernelArgs: 'virtwire.acpi=ignore', graceSeconds: 4 });
      await untilAgent(host.node, key);
      const askedAt = Date.now();
      await host.stop(key);
      expect(Date.now() - askedAt).toBeGreaterThan(3_500);
      expect(readLog(host.scratch.layout.handlerLog)).toContain(
        'Grace period expired, killing deleted VirtualMachineInstance stubborn',
      );
    });

    test('a VM that is stopped by force does not wait for its guest', async () => {
      const key = await host.start({ name: 'forced', kernelArgs: 'virtwire.acpi=ignore', graceSeconds: 600 });
      await untilRunning(host.node, key);
      await host.stop(key, true);
      expect(host.node.store.get(key)).toBeUndefined();
    });

    test('the handler is killed while the VM runs: the VM goes on, and its status is right', async () => {
      const key = await host.start({ name: 'handler-killed' });
      const running = await untilAgent(host.node, key);
      const { pid } = host.sandbox(key);
      const qemu = qemuOf(pid);
      const handler = host.node.handler.pid;
      if (handler !== undefined) process.kill(handler, 'SIGKILL');
      await until(
        'another handler',
        20_000,
        () => host.node.handler.pid !== undefined && host.node.handler.pid !== handler,
      );
      const pipes = countIn(host.scratch.layout.handlerLog, 'Accepted new notify pipe connection');
      await host.node.handler.ready;
      expect(qemuOf(pid)).toBe(qemu);
      expect(host.node.store.get(key)?.status?.phase).toBe('Running');
      expect(countIn(host.launcherLog(key), 'Domain started.')).toBe(1);
      // The new handler hears of what happens from now on.
      if (qemu !== undefined) process.kill(qemu, 'SIGKILL');
      const failed = await untilFinal(host.node, key);
      expect(failed.status?.phase).toBe('Failed');
      expect(running.metadata.uid).toBe(failed.metadata.uid);
      expect(countIn(host.scratch.layout.handlerLog, 'Accepted new notify pipe connection')).toBeGreaterThanOrEqual(
        pipes,
      );
      await host.stop(key);
    });
  },
);
