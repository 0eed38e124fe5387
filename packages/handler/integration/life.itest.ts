import { expect, test } from 'vitest';
import { NodeScene, until } from './support/node-scene.ts';

test('a VM is started once, runs, gets its agent and is written three times in all', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  const handler = await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  expect(launcher.said('started')).toEqual([1]);
  await until('the writes are told', () => handler.said('write').at(-1) === 'Running');
  expect(handler.said('write').length).toBeLessThanOrEqual(2);
  launcher.tell({ answer: { rpc: 'GetGuestInfo', with: { entity: { guestAgentVersion: '5.2' } } } });
  launcher.tell({ agent: true });
  const conditions = () => scene.store.get('default/vm1')?.status?.conditions ?? [];
  await until('AgentConnected', () => conditions().some((one) => one.type === 'AgentConnected'));
  await until('the agent write is told', () => handler.said('k8s').length > 0);
  expect(handler.said('write').length).toBeLessThanOrEqual(3);
  const [iface] = scene.store.get('default/vm1')?.status?.interfaces ?? [];
  expect(iface).toMatchObject({ name: 'default', infoSource: 'domain, guest-agent', ipAddress: '10.0.2.2' });
});

test('a launcher that comes late is noticed by its socket, without an error', async () => {
  await using scene = new NodeScene();
  const handler = await scene.startHandler();
  scene.makePod('vm1');
  scene.handOver('vm1');
  await until('the handler waits', () => handler.said('write').length > 0);
  const launcher = await scene.startLauncher('vm1');
  await scene.untilPhase('vm1', 'Running');
  expect(launcher.said('started')).toEqual([1]);
  expect(handler.said('k8s')).not.toContain('SyncFailed');
});

test('a guest that powers off ends as Succeeded, and everything of it is removed', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  const handler = await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  launcher.tell({ status: 'Shutoff', reason: 'Shutdown' });
  await scene.untilPhase('vm1', 'Succeeded');
  await until('the record is gone', () => !scene.hasRecord('vm1'));
  expect(handler.said('step')).toContain('tearDown');
});

test('QEMU killed: Failed with the reason, within two seconds', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  launcher.tell({ status: 'Shutoff', reason: 'Crashed' });
  await scene.untilPhase('vm1', 'Failed', 2_000);
});

test('launcher killed: Failed within two seconds, by its connection (design 4.2)', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  const handler = await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  await launcher.end('SIGKILL');
  await scene.untilPhase('vm1', 'Failed', 2_000);
  await until('the record is gone', () => !scene.hasRecord('vm1'));
  expect(handler.said('k8s')).toContain('Stopped');
});

test('a guest that powers off and a launcher that ends at once: Succeeded, not Failed', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  launcher.tell({ status: 'Shutoff', reason: 'Shutdown' });
  await until('the event is out', () => launcher.said('event').includes('Shutoff'));
  await launcher.end('SIGKILL');
  await scene.untilPhase('vm1', 'Succeeded');
});

test('deletion sends the power button, and kills when the grace period is over', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  const handler = await scene.startHandler();
  scene.handOver('vm1', (vmi) => {
    vmi.spec.terminationGracePeriodSeconds = 2;
  });
  await scene.untilPhase('vm1', 'Running');
  scene.store.change('default/vm1', (vmi) => {
    vmi.metadata.deletionTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
  });
  await scene.untilPhase('vm1', 'Failed', 10_000);
  const rpcs = launcher.said('rpc');
  expect(rpcs.indexOf('ShutdownVirtualMachine')).toBeGreaterThan(0);
  expect(rpcs.indexOf('KillVirtualMachine')).toBeGreaterThan(rpcs.indexOf('ShutdownVirtualMachine'));
  expect(handler.said('k8s')).toContain('ShuttingDown');
});

test('FM-13.4 an event for another VM than the pipe belongs to is refused', async () => {
  await using scene = new NodeScene();
  const one = await scene.startLauncher('vm1');
  await scene.startLauncher('vm2');
  await scene.startHandler();
  scene.handOver('vm1');
  scene.handOver('vm2');
  await scene.untilPhase('vm1', 'Running');
  await scene.untilPhase('vm2', 'Running');
  one.tell({ foreign: { name: 'vm2', uid: scene.store.get('default/vm2')?.metadata.uid ?? '' } });
  await until('the answer is there', () => one.lines.some((line) => line['ok'] === false));
  expect(scene.phase('vm2')).toBe('Running');
});

test('FM-4.3 a start that fails for good ends as Failed once its launcher is gone, and says why', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  launcher.tell({ answer: { rpc: 'SyncVirtualMachine', with: { success: false, message: 'no such machine type' } } });
  await scene.startHandler();
  scene.handOver('vm1');
  const synchronized = () =>
    (scene.store.get('default/vm1')?.status?.conditions ?? []).find((one) => one.type === 'Synchronized');
  await until('the reason is told', () => synchronized()?.message?.includes('no such machine type') === true);
  await launcher.end('SIGKILL');
  await scene.untilPhase('vm1', 'Failed');
  expect(synchronized()?.message).toContain('no such machine type');
});

test('a launcher that hangs keeps its VM Running, and others are started all the same', async () => {
  await using scene = new NodeScene();
  const hung = await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  hung.tell({ freeze: true });
  scene.store.change('default/vm1', (vmi) => {
    vmi.metadata.annotations = { touched: 'yes' };
  });
  await scene.startLauncher('vm2');
  scene.handOver('vm2');
  await scene.untilPhase('vm2', 'Running');
  expect(scene.phase('vm1')).toBe('Running');
});

test('FM-3.10 a VMI of the same name waits for the old one, and starts soon after its launcher is gone', async () => {
  await using scene = new NodeScene();
  const old = await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  scene.handOver('vm1', (vmi) => {
    vmi.metadata.uid = '33333333-0000-4000-8000-000000000001';
    vmi.metadata.resourceVersion = '100';
    vmi.status = { ...vmi.status, activePods: { [scene.podUid('vm9')]: 'node01' } };
  });
  const fresh = await scene.startLauncher('vm9');
  expect(fresh.said('rpc')).not.toContain('SyncVirtualMachine');
  await old.end('SIGKILL');
  await scene.untilPhase('vm1', 'Running');
  expect(fresh.said('started')).toEqual([1]);
});

test('SIGTERM stops the handler and leaves the VM alone', async () => {
  await using scene = new NodeScene();
  await scene.startLauncher('vm1');
  const handler = await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  await handler.end('SIGTERM');
  expect(handler.child.exitCode).toBe(0);
  expect(scene.hasRecord('vm1')).toBe(true);
  expect(scene.phase('vm1')).toBe('Running');
});
