import { isZeroQuantity, volumeKind } from '@virtwire/vm-model';
import type { Vmi, Volume } from '@virtwire/vm-model';
import { checkChoices } from './choices.ts';
import type { Problem } from './problem.ts';
import type { Report } from './rules.ts';

/** What may stand behind a volume on a node without Kubernetes. */
const VOLUME_KINDS: ReadonlySet<string> = new Set([
  'containerDisk',
  'emptyDisk',
  'hostDisk',
  'persistentVolumeClaim',
  'ephemeral',
  'cloudInitNoCloud',
  'cloudInitConfigDrive',
]);

function checkMemory(report: Report, { spec }: Vmi): void {
  const { memory, resources } = spec.domain;
  if (
    memory?.guest === undefined &&
    resources?.requests?.['memory'] === undefined &&
    resources?.limits?.['memory'] === undefined
  ) {
    report('spec.domain.memory.guest', 'is missing: say how much memory the guest gets, for example 512Mi');
  } else if (memory?.guest !== undefined && isZeroQuantity(memory.guest)) {
    report('spec.domain.memory.guest', 'is 0: say how much memory the guest gets, for example 512Mi');
  }
}

function checkUnique(report: Report, field: string, names: readonly unknown[]): void {
  const seen = new Set<unknown>();
  for (const [i, name] of names.entries()) {
    if (typeof name !== 'string' || name === '') report(`${field}[${i}].name`, 'is missing');
    else if (seen.has(name)) report(`${field}[${i}].name`, `"${name}" is used twice`);
    seen.add(name);
  }
}

function checkVolume(report: Report, field: string, volume: Volume): void {
  const kind = volumeKind(volume);
  if (kind === undefined) return report(field, 'has no source: add for example containerDisk or emptyDisk');
  if (!VOLUME_KINDS.has(kind))
    return report(`${field}.${kind}`, 'needs Kubernetes: not available on a node without it');
  if (volume.hostDisk?.type === 'DiskOrCreate' && volume.hostDisk.capacity === undefined) {
    report(`${field}.hostDisk.capacity`, 'is missing: a disk to create needs a size');
  }
  for (const source of ['cloudInitNoCloud', 'cloudInitConfigDrive'] as const) {
    const data = volume[source];
    if (data?.secretRef !== undefined || data?.networkDataSecretRef !== undefined) {
      report(`${field}.${source}`, 'secrets need Kubernetes: put the data in userData and networkData');
    }
  }
}

function checkDisks(report: Report, { spec }: Vmi): void {
  const volumes = spec.volumes ?? [];
  const disks = spec.domain.devices.disks ?? [];
  checkUnique(
    report,
    'spec.volumes',
    volumes.map((volume) => volume.name),
  );
  checkUnique(
    report,
    'spec.domain.devices.disks',
    disks.map((disk) => disk.name),
  );
  for (const [i, volume] of volumes.entries()) checkVolume(report, `spec.volumes[${i}]`, volume);
  for (const [i, disk] of disks.entries()) {
    if (volumes.some((volume) => volume.name === disk.name)) continue;
    report(`spec.domain.devices.disks[${i}].name`, `no volume is named "${disk.name}": add it to spec.volumes`);
  }
}

function checkNetworks(report: Report, { spec }: Vmi): void {
  const networks = spec.networks ?? [];
  const interfaces = spec.domain.devices.interfaces ?? [];
  checkUnique(
    report,
    'spec.networks',
    networks.map((network) => network.name),
  );
  for (const [i, network] of networks.entries()) {
    const field = `spec.networks[${i}]`;
    if (network.pod === undefined)
      report(field, 'only the pod network exists on a node without Kubernetes: write pod: {}');
    if (!interfaces.some((nic) => nic.name === network.name))
      report(`${field}.name`, `no interface is named "${network.name}"`);
  }
  for (const [i, nic] of interfaces.entries()) {
    const field = `spec.domain.devices.interfaces[${i}]`;
    if (!networks.some((network) => network.name === nic.name)) {
      report(`${field}.name`, `no network is named "${nic.name}": add it to spec.networks`);
    }
    if (nic.masquerade === undefined && nic.bridge === undefined) report(field, 'binding must be masquerade or bridge');
  }
  if (networks.length > 1) report('spec.networks[1]', 'a node without Kubernetes gives each VM one network');
}

const SIDECARS_ANNOTATION = 'hooks.kubevirt.io/hookSidecars';

/** What only a cluster can give a VM, and which would be left out without a word. */
function checkCluster(report: Report, { metadata, spec }: Vmi): void {
  for (const i of (spec.accessCredentials ?? []).keys()) {
    report(`spec.accessCredentials[${i}]`, 'secrets need Kubernetes: put users and keys in cloud-init userData');
  }
  const { devices } = spec.domain;
  for (const kind of ['gpus', 'hostDevices'] as const) {
    for (const i of (devices[kind] ?? []).keys()) {
      report(`spec.domain.devices.${kind}[${i}]`, 'needs Kubernetes: its device plugins hand devices to pods');
    }
  }
  for (const i of (devices.filesystems ?? []).keys()) {
    report(`spec.domain.devices.filesystems[${i}]`, 'needs Kubernetes: virtiofs runs in a container of its own');
  }
  if (metadata.annotations?.[SIDECARS_ANNOTATION] !== undefined) {
    report(`metadata.annotations["${SIDECARS_ANNOTATION}"]`, 'sidecars need Kubernetes: leave the annotation out');
  }
}

/** Checks what the manifest itself says; files are looked at elsewhere. */
export function validateVmi(file: string, vmi: Vmi): Problem[] {
  const problems: Problem[] = [];
  const report: Report = (field, what) => void problems.push({ where: file, field, what });
  checkMemory(report, vmi);
  checkDisks(report, vmi);
  checkNetworks(report, vmi);
  checkCluster(report, vmi);
  checkChoices(report, vmi);
  return problems;
}
