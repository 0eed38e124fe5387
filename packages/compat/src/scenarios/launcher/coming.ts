import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CellResult } from '../../cell.ts';
import type { HandlerAction } from '../../emulate/api.ts';
import { apiNow } from '../../matrix/test-vmi.ts';
import { NODE_NAME } from '../../matrix/node-dirs.ts';
import { failuresOf } from '../launcher-scene.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, notBuiltOrThrow, PASS } from '../verdicts.ts';
import { checkPeace } from './running.ts';

const IMAGE_BYTES = 1_048_576;
const MIGRATION_UID = '2f1c9a60-5b1e-4c1b-9c1d-0242ac120002';

/** A disk is plugged into a VM that runs. */
export async function hotplugDisk(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  const { devices } = scene.vmi.spec.domain;
  devices.disks = [...(devices.disks ?? []), { name: 'plugged', disk: { bus: 'scsi' }, serial: 'plugged' }];
  scene.vmi.spec.volumes = [
    ...(scene.vmi.spec.volumes ?? []),
    { name: 'plugged', persistentVolumeClaim: { claimName: 'plugged', hotpluggable: true } },
  ];
  scene.vmi.status = {
    ...scene.vmi.status,
    volumeStatus: [
      {
        name: 'plugged',
        target: '',
        phase: 'MountedToPod',
        persistentVolumeClaimInfo: { volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] },
        hotplugVolume: { attachPodName: 'hp-1', attachPodUID: 'u1' },
      },
    ],
  };
  const image = join(scene.dirs.root, 'l/hotplug-disks/plugged.img');
  mkdirSync(dirname(image), { recursive: true });
  writeFileSync(image, new Uint8Array(IMAGE_BYTES));
  scene.note(`the image is ${image}`);
  const outcome = await scene.act(handler, 'update');
  if (!outcome.ok) return notBuiltOrThrow(failuresOf(outcome));
  await scene.until('the disk in the domain', () =>
    JSON.stringify(handler.domain(scene.vmi.metadata)).includes('plugged'),
  );
  checkPeace(handler);
  return PASS;
}

/** Host devices are plugged into a VM that runs. */
export async function hotplugHostDevices(scene: LauncherScene): Promise<CellResult> {
  return actOnce(scene, 'hotplugHostDevices');
}

function setMigration(scene: LauncherScene, source: string, target: string): void {
  const migrationState = {
    migrationUid: MIGRATION_UID,
    sourceNode: source,
    targetNode: target,
    targetPod: 'virt-launcher-vm1-target',
    startTimestamp: apiNow(),
    targetNodeAddress: '127.0.0.1',
    targetDirectMigrationNodePorts: { '40001': 0, '40002': 49152 },
  };
  scene.vmi.status = { ...scene.vmi.status, migrationState: migrationState };
}

/** The VM leaves this node. */
export async function migrationSource(scene: LauncherScene): Promise<CellResult> {
  setMigration(scene, NODE_NAME, 'node02');
  return actOnce(scene, 'migrate');
}

/** The VM comes to this node: the launcher prepares, and finalizes when the domain is here. */
export async function migrationTarget(scene: LauncherScene): Promise<CellResult> {
  await scene.startLauncher();
  const handler = await scene.startHandler();
  setMigration(scene, 'node02', NODE_NAME);
  const prepared = await scene.act(handler, 'prepareMigrationTarget');
  if (!prepared.ok) return notBuiltOrThrow(failuresOf(prepared));
  const finalized = await scene.act(handler, 'finalizeMigration');
  if (!finalized.ok) return notBuiltOrThrow(failuresOf(finalized));
  checkPeace(handler);
  return PASS;
}

async function actOnce(scene: LauncherScene, action: HandlerAction): Promise<CellResult> {
  const { handler } = await scene.runVm();
  const outcome = await scene.act(handler, action);
  if (!outcome.ok) return notBuiltOrThrow(failuresOf(outcome));
  check(outcome.calls.length > 0, `the handler made no call for ${action}`);
  checkPeace(handler);
  return PASS;
}
