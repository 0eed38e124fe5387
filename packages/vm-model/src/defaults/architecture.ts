import type { VmiDisk } from '../vmi/devices.ts';
import type { VmiSpec } from '../vmi/vmi.ts';

/** Disk buses, watchdogs, firmware and CPU model that depend on the architecture. */
export function defaultArchitectureDevices(spec: VmiSpec): void {
  const { watchdog, disks } = spec.domain.devices;
  const isAmd64 = spec.architecture !== 'arm64' && spec.architecture !== 's390x';
  for (const disk of disks ?? []) defaultBus(disk, isAmd64 ? 'sata' : 'virtio');
  if (spec.architecture === 'arm64') defaultArm64(spec);
  if (watchdog === undefined) return;
  if (isAmd64) {
    watchdog.i6300esb ??= {};
    watchdog.i6300esb.action ||= 'reset';
  } else if (spec.architecture === 's390x') {
    watchdog.diag288 ??= {};
    watchdog.diag288.action ||= 'reset';
  }
}

function defaultBus(disk: VmiDisk, bus: 'sata' | 'virtio'): void {
  for (const target of [disk.disk, disk.cdrom, disk.lun]) {
    if (target !== undefined && (target.bus ?? '') === '') target.bus = bus;
  }
}

function defaultArm64(spec: VmiSpec): void {
  const cpu = (spec.domain.cpu ??= {});
  cpu.model ||= 'host-passthrough';
  const firmware = (spec.domain.firmware ??= {});
  firmware.bootloader ??= { efi: {} };
  if (firmware.bootloader.efi !== undefined) firmware.bootloader.efi.secureBoot ??= false;
}
