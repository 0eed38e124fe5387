import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { domainName } from '@virtwire/vm-model';
import type { CellResult } from '../../cell.ts';
import type { EmulatedHandler } from '../../emulate/api.ts';
import { apiNow, VM } from '../../matrix/test-vmi.ts';
import { NODE_NAME } from '../../matrix/node-dirs.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { checkPeace, notifyCalls } from './peace.ts';

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
  await scene.must(handler, 'update');
  await scene.until('the disk in the domain', () =>
    JSON.stringify(handler.domain(scene.vmi.metadata)).includes('plugged'),
  );
  checkPeace(handler);
  return PASS;
}

/**
 * Host devices are plugged into a VM that runs, in the background. The cell's pod has none: nothing changes, and the
 * next round is taken.
 */
export async function hotplugHostDevices(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  for (let round = 0; round < 2; round++) {
    await scene.must(handler, 'hotplugHostDevices');
    await scene.until('the end of the round', () => scene.daemon.callsOf('DOMAIN_GET_XML_DESC').length > round);
  }
  await scene.must(handler, 'update');
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  checkPeace(handler);
  return PASS;
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
  scene.vmi.status = { ...scene.vmi.status, migrationState, migrationTransport: 'Unix' };
}

/** What the handler knows of the migration, by the keys of its release. */
function migrationOf(scene: LauncherScene, handler: EmulatedHandler): Readonly<Record<string, unknown>> {
  const domain = handler.domain(scene.vmi.metadata) as
    { readonly Spec?: { readonly Metadata?: { readonly KubeVirt?: { readonly Migration?: object } } } } | undefined;
  return { ...domain?.Spec?.Metadata?.KubeVirt?.Migration };
}

/** The VM leaves this node: what handlers wait for arrives with the domain's end. */
export async function migrationSource(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm({ jobDurationMs: 50 });
  setMigration(scene, NODE_NAME, 'node02');
  await scene.must(handler, 'migrate');
  await scene.must(handler, 'migrate');
  await scene.untilDomain(handler, 'Shutoff', 'Migrated');
  await scene.until('the end of the migration at the handler', () => handler.hasMigrationEnded(scene.vmi.metadata));
  const { UID, Failed } = migrationOf(scene, handler);
  check(UID === MIGRATION_UID && Failed !== true, `the migration ${String(UID)} ended with Failed ${String(Failed)}`);
  const times = scene.daemon.callsOf('DOMAIN_MIGRATE_PERFORM3_PARAMS').length;
  check(times === 1, `the same migration was begun ${times} times`);
  checkPeace(handler);
  return PASS;
}

/** A migration is given up at the user's wish, and one that fails is told: the VM stays and runs. */
export async function migrationFailure(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm({ jobDurationMs: 'untilLever' });
  setMigration(scene, NODE_NAME, 'node02');
  await scene.must(handler, 'migrate');
  await scene.until('the migration in libvirt', () => scene.domain.job !== undefined);
  await scene.must(handler, 'cancelMigration');
  const hasEnded = (): boolean => migrationOf(scene, handler)['EndTimestamp'] !== undefined;
  await scene.until('the end of the migration at the handler', hasEnded);
  const { Failed, AbortStatus } = migrationOf(scene, handler);
  check(Failed === true, 'a migration that was given up did not fail');
  check(AbortStatus === 'Succeeded', `the abort ended with ${String(AbortStatus)}`);
  await scene.untilDomain(handler, 'Running');
  check(scene.isDomainActive && scene.starts === 1, 'the VM did not stay');
  await scene.must(handler, 'update');
  checkPeace(handler);
  return PASS;
}

const FIRMWARE_UUID = '6ba7b810-9dad-41d1-80b4-00c04fd430c8';

/** The domain as the source's libvirt sends it. */
function incomingXml(): string {
  return `<domain type='qemu'><name>${domainName(VM.namespace, VM.name)}</name><uuid>${FIRMWARE_UUID}</uuid>
<metadata><kubevirt xmlns="http://kubevirt.io"><uid>${VM.uid}</uid></kubevirt></metadata>
<memory unit='KiB'>65536</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><disk type='file' device='disk'><source file='/var/lib/vms/root.img'/><target dev='vda' bus='virtio'/>
<alias name='ua-root'/></disk></devices></domain>`;
}

/** The VM comes to this node: the launcher prepares, the domain arrives, and the handler learns of its end. */
export async function migrationTarget(scene: LauncherScene): Promise<CellResult> {
  await scene.startLauncher();
  const handler = await scene.startHandler();
  setMigration(scene, 'node02', NODE_NAME);
  await scene.must(handler, 'prepareMigrationTarget');
  await scene.must(handler, 'prepareMigrationTarget');
  const { starts, isDomainActive } = scene;
  check(!isDomainActive && starts === 0, 'the target started the VM instead of waiting for it');
  scene.daemon.hypervisor.receive(incomingXml());
  await scene.untilDomain(handler, 'Running');
  const types = notifyCalls(handler, 'HandleDomainEvent').map(({ request }) => request['eventType']);
  check(types.includes('ADDED'), 'no event ADDED told that the domain is here');
  const hasEnded = (): boolean => migrationOf(scene, handler)['EndTimestamp'] !== undefined;
  await scene.until('the end of the migration at the handler', hasEnded);
  const { UID, Failed } = migrationOf(scene, handler);
  check(UID === MIGRATION_UID && Failed !== true, `the migration ${String(UID)} ended with Failed ${String(Failed)}`);
  await scene.must(handler, 'finalizeMigration');
  await scene.must(handler, 'finalizeMigration');
  await scene.must(handler, 'update');
  check(scene.starts === 0, 'the VM that arrived was started again');
  checkPeace(handler);
  return PASS;
}
