import type { CmdRpc } from '@virtwire/shared-proto';
import type { Vmi } from '@virtwire/vm-model';
import type { CellResult } from '../../cell.ts';
import type { EmulatedLauncher } from '../../emulate/api.ts';
import { apiNow, POD_UID } from '../../matrix/test-vmi.ts';
import { NODE_NAME } from '../../matrix/node-dirs.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, PartMissing, PASS } from '../verdicts.ts';
import { callsOf } from './running.ts';

/** How long a handler that says it lacks a part is watched for doing something about it all the same. */
const WATCH_MS = 300;
const MIGRATION_UID = '2f1c9a60-5b1e-4c1b-9c1d-0242ac120002';
const TARGET_POD = 'p2';

/**
 * A handler that says it lacks a part leaves the VM alone instead of doing half of it.
 *
 * @throws {PartMissing} unless it acts against its own word.
 */
async function leavesAlone(scene: HandlerScene, launcher: EmulatedLauncher, rpcs: readonly CmdRpc[]): Promise<void> {
  const isQuiet = (): boolean => rpcs.every((rpc) => callsOf(launcher, rpc).length === 0);
  await scene.stays(`no ${rpcs.join(' and no ')}`, isQuiet, WATCH_MS);
  check(scene.vmi.status?.phase === 'Running', 'the VMI left Running over a part that the handler lacks');
  check(launcher.state.process === 'running', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
}

function addHotplugDisk(vmi: Vmi): void {
  vmi.spec.domain.devices.disks = [
    ...(vmi.spec.domain.devices.disks ?? []),
    { name: 'plugged', disk: { bus: 'scsi' }, serial: 'plugged' },
  ];
  vmi.spec.volumes = [
    ...(vmi.spec.volumes ?? []),
    { name: 'plugged', persistentVolumeClaim: { claimName: 'plugged', hotpluggable: true } },
  ];
  const status = (vmi.status ??= {});
  status.volumeStatus = [
    ...(status.volumeStatus ?? []),
    {
      name: 'plugged',
      target: '',
      phase: 'AttachedToNode',
      hotplugVolume: { attachPodName: 'hp-1', attachPodUID: 'u1' },
    },
  ];
}

const volumePhase = (scene: HandlerScene): string | undefined =>
  scene.vmi.status?.volumeStatus?.find(({ name }) => name === 'plugged')?.phase;

/** A disk is plugged into a VM that runs. */
export async function hotplugDisk(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  scene.change(addHotplugDisk);
  await scene.until('the disk in the domain', () => launcher.state.disks.includes('plugged'));
  await scene.until('the volume Ready', () => volumePhase(scene) === 'Ready');
  check(launcher.state.process === 'running', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
  if (scene.lacks('hotplug')) {
    throw new PartMissing(
      'mounting hotplug volumes in the pod (handler); its calls and status are right with a stand-in',
    );
  }
  return PASS;
}

function startMigration(vmi: Vmi, source: string, target: string): void {
  const status = (vmi.status ??= {});
  status.migrationState = {
    migrationUid: MIGRATION_UID,
    sourceNode: source,
    targetNode: target,
    targetPod: 'virt-launcher-vm1-target',
    startTimestamp: apiNow(),
    targetNodeAddress: '127.0.0.1',
    targetNodeDomainReadyTimestamp: undefined,
    targetDirectMigrationNodePorts: { '40001': 0, '40002': 49152 },
  } as never;
  vmi.metadata.labels = { ...vmi.metadata.labels, 'kubevirt.io/migrationTargetNodeName': target };
}

/** The VM leaves this node: the handler is the source's. */
export async function migrationSource(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  scene.change((vmi) => startMigration(vmi, NODE_NAME, 'node02'));
  if (scene.lacks('migrationProxies')) {
    await leavesAlone(scene, launcher, ['MigrateVirtualMachine', 'ShutdownVirtualMachine', 'DeleteVirtualMachine']);
    throw new PartMissing('live migration, source side (handler)');
  }
  await scene.until('the end of the migration', () => scene.vmi.status?.migrationState?.completed === true);
  check(scene.vmi.status?.migrationState?.failed !== true, 'the migration failed');
  return PASS;
}

/** The VM comes to this node: the handler is the target's. */
export async function migrationTarget(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.startLauncher({}, TARGET_POD);
  await scene.startHandler();
  scene.handOver((vmi) => {
    vmi.metadata.labels = { ...vmi.metadata.labels, 'kubevirt.io/nodeName': 'node02' };
    startMigration(vmi, 'node02', NODE_NAME);
    const status = (vmi.status ??= {});
    status.phase = 'Running';
    status.nodeName = 'node02';
    status.activePods = { [POD_UID]: 'node02', [TARGET_POD]: NODE_NAME };
  });
  if (scene.lacks('migrationProxies')) {
    await leavesAlone(scene, launcher, ['SyncMigrationTarget', 'SyncVirtualMachine', 'DeleteVirtualMachine']);
    throw new PartMissing('live migration, target side (handler)');
  }
  await scene.until('the preparation', () => callsOf(launcher, 'SyncMigrationTarget').length > 0);
  launcher.receiveMigration();
  await scene.until('finalizing', () => callsOf(launcher, 'FinalizeVirtualMachineMigration').length > 0);
  check(launcher.state.process === 'running', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
  return PASS;
}
