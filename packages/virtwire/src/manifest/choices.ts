import { volumeKind } from '@virtwire/vm-model';
import type { CloudInitSource, Vmi, VmiDisk, VmiInterface, Volume } from '@virtwire/vm-model';
import type { Report } from './rules.ts';

/** Go's names of processors, by Node's. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', s390x: 's390x' };
const MAC = /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Those of the fields that are set. */
function setOf<T extends object>(object: T, names: readonly (keyof T & string)[]): readonly string[] {
  return names.filter((name) => (object[name] ?? null) !== null);
}

/** The fields of which one at most may be set: two of them are a mistake that a start would pass over. */
function atMostOne(report: Report, field: string, found: readonly string[]): void {
  const [first, second] = found;
  if (first !== undefined && second !== undefined)
    report(`${field}.${second}`, `${first} is there, too: leave one out`);
}

function oneOf(report: Report, field: string, value: string | undefined, choices: readonly string[]): void {
  if (value === undefined || value === '' || choices.includes(value)) return;
  report(field, `"${value}" is none of ${choices.join(', ')}`);
}

/** @source KubeVirt v1.9.0 pkg/virt-api/webhooks/validating-webhook/admitters/vmi-create-admitter.go validateDisks */
function checkDisk(report: Report, field: string, disk: VmiDisk): void {
  atMostOne(report, field, setOf(disk, ['disk', 'cdrom', 'lun']));
  oneOf(report, `${field}.disk.bus`, disk.disk?.bus, ['virtio', 'sata', 'scsi', 'usb']);
  oneOf(report, `${field}.cdrom.bus`, disk.cdrom?.bus, ['sata', 'scsi', 'usb']);
  oneOf(report, `${field}.lun.bus`, disk.lun?.bus, ['virtio', 'sata', 'scsi']);
  oneOf(report, `${field}.cache`, disk.cache, ['none', 'writethrough', 'writeback']);
  oneOf(report, `${field}.io`, disk.io, ['native', 'threads', 'default']);
}

const BINDINGS = ['bridge', 'masquerade', 'sriov', 'passt', 'passtBinding', 'slirp', 'macvtap', 'binding'] as const;

function checkInterface(report: Report, field: string, nic: VmiInterface): void {
  atMostOne(report, field, setOf(nic, BINDINGS));
  if (nic.macAddress !== undefined && nic.macAddress !== '' && !MAC.test(nic.macAddress)) {
    report(`${field}.macAddress`, `"${nic.macAddress}" is no MAC address: write six bytes, as 02:00:00:00:00:01`);
  }
}

function checkCloudInit(report: Report, field: string, source: CloudInitSource): void {
  const user = setOf(source, ['secretRef', 'userData', 'userDataBase64']);
  const network = setOf(source, ['networkDataSecretRef', 'networkData', 'networkDataBase64']);
  atMostOne(report, field, user);
  atMostOne(report, field, network);
  if (user.length + network.length === 0) report(field, 'is empty: put userData or networkData in it');
  for (const name of ['userDataBase64', 'networkDataBase64'] as const) {
    if (!BASE64.test((source[name] ?? '').replaceAll(/\s/g, ''))) report(`${field}.${name}`, 'is no base64');
  }
}

function checkVolume(report: Report, field: string, volume: Volume): void {
  const sources = Object.keys(volume).filter((key) => volumeKind({ name: '', [key]: {} }) !== undefined);
  atMostOne(report, field, sources);
  oneOf(report, `${field}.hostDisk.type`, volume.hostDisk?.type, ['Disk', 'DiskOrCreate']);
  if (volume.persistentVolumeClaim?.claimName === '') {
    report(`${field}.persistentVolumeClaim.claimName`, 'is missing');
  }
  if (volume.emptyDisk?.capacity === '0') {
    report(`${field}.emptyDisk.capacity`, 'is missing: say how large the disk is, for example 1Gi');
  }
  for (const kind of ['cloudInitNoCloud', 'cloudInitConfigDrive'] as const) {
    const source = volume[kind];
    if (source !== undefined) checkCloudInit(report, `${field}.${kind}`, source);
  }
}

function checkBootOrder(report: Report, { spec }: Vmi): void {
  const { disks = [], interfaces = [] } = spec.domain.devices;
  const taken = new Map<unknown, string>();
  for (const [kind, devices] of [['disks', disks] as const, ['interfaces', interfaces] as const]) {
    for (const [i, { bootOrder, name }] of devices.entries()) {
      if (bootOrder === undefined) continue;
      const other = taken.get(bootOrder);
      if (other !== undefined)
        report(`spec.domain.devices.${kind}[${i}].bootOrder`, `${bootOrder} is that of ${other}`);
      taken.set(bootOrder, name);
    }
  }
}

function checkFirmware(report: Report, { spec }: Vmi): void {
  const { bootloader, kernelBoot } = spec.domain.firmware ?? {};
  if (bootloader !== undefined) {
    atMostOne(report, 'spec.domain.firmware.bootloader', setOf(bootloader, ['bios', 'efi']));
  }
  if (kernelBoot === undefined) return;
  const { container, kernelArgs } = kernelBoot;
  if (container === undefined) {
    if (kernelArgs) report('spec.domain.firmware.kernelBoot.container', 'is missing: kernelArgs are for its kernel');
  } else if (!container.kernelPath && !container.initrdPath) {
    report('spec.domain.firmware.kernelBoot.container.kernelPath', 'is missing: name the kernel in the image');
  }
}

/**
 * Checks where only some values make sense, or one of several: what KubeVirt's API server would refuse, and what would
 * show as an error of libvirt or of nobody here.
 *
 * @param architecture Node's name of this machine's processor.
 */
export function checkChoices(report: Report, vmi: Vmi, architecture: string = process.arch): void {
  const { spec } = vmi;
  const own = ARCHITECTURES[architecture] ?? architecture;
  if (spec.architecture !== undefined && spec.architecture !== '' && spec.architecture !== own) {
    report('spec.architecture', `"${spec.architecture}" is not that of this machine, which is ${own}`);
  }
  for (const [i, disk] of (spec.domain.devices.disks ?? []).entries()) {
    checkDisk(report, `spec.domain.devices.disks[${i}]`, disk);
  }
  for (const [i, nic] of (spec.domain.devices.interfaces ?? []).entries()) {
    checkInterface(report, `spec.domain.devices.interfaces[${i}]`, nic);
  }
  for (const [i, volume] of (spec.volumes ?? []).entries()) checkVolume(report, `spec.volumes[${i}]`, volume);
  checkBootOrder(report, vmi);
  checkFirmware(report, vmi);
}
