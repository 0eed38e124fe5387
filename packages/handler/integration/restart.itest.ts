import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NodeScene, until } from './support/node-scene.ts';

/** Moments of a start at which the handler is killed; each says how it is recognised. */
const MOMENTS: readonly [string, (scene: NodeScene) => boolean][] = [
  ['after the ghost record', (scene) => scene.hasRecord('vm1')],
  ['during network phase 1', (scene) => scene.handler.said('step').includes('network')],
  ['during device ownership', (scene) => scene.handler.said('step').includes('devices')],
];

test.each(MOMENTS)('killed %s, the VM still reaches Running and was started once', async (_title, isReached) => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  await scene.startHandler({ stepMs: 150 });
  scene.handOver('vm1');
  await until('the moment', () => isReached(scene));
  await scene.handler.end('SIGKILL');
  await scene.startHandler();
  await scene.untilPhase('vm1', 'Running');
  expect(launcher.said('started')).toEqual([1]);
});

test('killed while the launcher works on the start, the VM reaches Running and was started once', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  launcher.tell({ answer: { rpc: 'SyncVirtualMachine', with: { delayMs: 400 } } });
  await scene.startHandler();
  scene.handOver('vm1');
  await until('the sync has begun', () => launcher.said('rpc').includes('SyncVirtualMachine'));
  await scene.handler.end('SIGKILL');
  await scene.startHandler();
  await scene.untilPhase('vm1', 'Running');
  expect(launcher.said('started')).toEqual([1]);
});

test('killed while the VM runs, a new handler keeps it Running and hears its events again', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  await scene.handler.end('SIGKILL');
  const handler = await scene.startHandler();
  await until('the launcher was asked', () => launcher.said('rpc').includes('GetDomain'));
  launcher.tell({ status: 'Paused', reason: 'User' });
  const isPaused = () =>
    (scene.store.get('default/vm1')?.status?.conditions ?? []).some((one) => one.type === 'Paused');
  await until('the pause is in the status', isPaused);
  expect(scene.phase('vm1')).toBe('Running');
  expect(handler.said('write')).not.toContain('Failed');
  expect(launcher.said('started')).toEqual([1]);
});

test('FM-3.4 a lost ghost record of a running VM is rebuilt, and the VM stays Running', async () => {
  await using scene = new NodeScene();
  await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  await scene.handler.end('SIGKILL');
  rmSync(join(scene.root, 'private/ghost-records'), { recursive: true });
  const handler = await scene.startHandler();
  await until('the record is back', () => scene.hasRecord('vm1'));
  expect(scene.phase('vm1')).toBe('Running');
  expect(handler.said('write')).not.toContain('Failed');
});

test('FM-2.7 a launcher that hangs at the restart keeps its VM as it is, and delays no other', async () => {
  await using scene = new NodeScene();
  const one = await scene.startLauncher('vm1');
  const two = await scene.startLauncher('vm2');
  await scene.startHandler();
  scene.handOver('vm1');
  scene.handOver('vm2');
  await scene.untilPhase('vm1', 'Running');
  await scene.untilPhase('vm2', 'Running');
  await scene.handler.end('SIGKILL');
  one.tell({ freeze: true });
  const handler = await scene.startHandler();
  two.tell({ status: 'Shutoff', reason: 'Shutdown' });
  await scene.untilPhase('vm2', 'Succeeded', 5_000);
  expect(scene.phase('vm1')).toBe('Running');
  expect(handler.said('write')).not.toContain('Failed');
});

test('a launcher that died while no handler ran ends its VM as Failed, soon after the restart', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  await scene.handler.end('SIGKILL');
  await launcher.end('SIGKILL');
  await scene.startHandler();
  await scene.untilPhase('vm1', 'Failed', 6_000);
  await until('the record is gone', () => !scene.hasRecord('vm1'));
});

test('FM-3.11 a VMI that was deleted while no handler ran leaves nothing behind', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  await scene.handler.end('SIGKILL');
  scene.store.remove('default/vm1');
  await launcher.end('SIGKILL');
  rmSync(join(scene.root, 'p', scene.podUid('vm1')), { recursive: true });
  await scene.startHandler();
  await until('the record is gone', () => !scene.hasRecord('vm1'));
});

test('FM-2.4 a notify socket that was removed is made anew, and events go on', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  const handler = await scene.startHandler();
  scene.handOver('vm1');
  await scene.untilPhase('vm1', 'Running');
  rmSync(join(scene.root, 'share/domain-notify.sock'));
  await until('the failure is told', () => handler.said('k8s').includes('NotifyServerFailure'));
  launcher.tell({ status: 'Shutoff', reason: 'Shutdown' });
  await scene.untilPhase('vm1', 'Succeeded');
});

test('ten identical sync errors cause one write, and a good sync takes the condition away (FM-4.4, FM-4.5)', async () => {
  await using scene = new NodeScene();
  const launcher = await scene.startLauncher('vm1');
  launcher.tell({ answer: { rpc: 'SyncVirtualMachine', with: { success: false, message: 'no disk' } } });
  launcher.tell({ answer: { rpc: 'GetDomain', with: {} } });
  const handler = await scene.startHandler();
  scene.handOver('vm1', (vmi) => {
    vmi.status = { ...vmi.status, phase: 'Scheduled' };
  });
  const conditions = () => scene.store.get('default/vm1')?.status?.conditions ?? [];
  const synchronized = () => conditions().find((one) => one.type === 'Synchronized');
  await until('the condition says why', () => synchronized()?.message?.includes('no disk') === true);
  await until('it was tried often', () => handler.said('k8s').filter((reason) => reason === 'SyncFailed').length >= 10);
  const errors = handler.said('write').length;
  expect(errors).toBeLessThanOrEqual(2);
  launcher.tell({ answer: { rpc: 'SyncVirtualMachine', with: {} } });
  await until('the condition is gone', () => synchronized() === undefined, 20_000);
});
