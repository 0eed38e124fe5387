import type { DiskBus, Vmi } from '@virtwire/vm-model';

import { busOf } from './vmi-traits.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** Prefix of a disk's name in the guest. An unknown bus has none, as in the model. */
function prefixOf(bus: DiskBus | ''): string {
  switch (bus) {
    case 'virtio':
      return 'vd';
    case 'sata':
    case 'scsi':
    case 'usb':
      return 'sd';
    default:
      return '';
  }
}

/** A target name and the number of its letters: `sdb` is 1. */
export interface DiskName {
  readonly device: string;
  readonly index: number;
}

/**
 * Hands out target names in the order of the calls; a disk that already has one in the VMI status keeps it, so that
 * names stay the same while disks come and go.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go, makeDeviceName
 */
export class DiskNamer {
  readonly #targetByDisk = new Map<string, string>();
  readonly #diskByTarget = new Map<string, string>();

  constructor(vmi: Vmi) {
    const buses = new Map((vmi.spec.domain.devices.disks ?? []).map((disk) => [disk.name, busOf(disk)]));
    for (const { name, target } of vmi.status?.volumeStatus ?? []) {
      const bus = buses.get(name);
      if (bus === undefined || target === '') continue;
      this.#targetByDisk.set(name, target);
      this.#diskByTarget.set(target, name);
    }
  }

  /** The name of a disk. */
  nameOf(disk: string, bus: DiskBus | ''): DiskName {
    const prefix = prefixOf(bus);
    const kept = this.#targetByDisk.get(disk);
    if (kept !== undefined) {
      const letters = kept.startsWith(prefix) ? kept.slice(prefix.length) : '';
      return { device: kept, index: /^[a-z]+$/.test(letters) ? indexOf(letters) : 0 };
    }
    for (let index = 0; ; index++) {
      const device = `${prefix}${lettersOf(index)}`;
      if (this.#diskByTarget.has(device)) continue;
      this.#diskByTarget.set(device, disk);
      return { device, index };
    }
  }
}

/** 0 is `a`, 25 is `z`, 26 is `aa`. */
function lettersOf(index: number): string {
  const last = LETTERS.charAt(index % LETTERS.length);
  const rest = Math.floor(index / LETTERS.length);
  return rest === 0 ? last : `${lettersOf(rest - 1)}${last}`;
}

function indexOf(letters: string): number {
  let index = 0;
  for (const letter of letters) index = index * LETTERS.length + LETTERS.indexOf(letter) + 1;
  return index - 1;
}
