import type { Domain, DomainDiskDriver, Vmi, VmiDisk } from '@virtwire/vm-model';
import { quantityValue } from '@virtwire/vm-model';

import { busOf } from './vmi-traits.ts';

const THREADS_PER_CPU = 2;

/** Threads of a pool that serves every disk; 0 when there is no such pool. */
export function supplementalPoolSize(vmi: Vmi): number {
  const { ioThreadsPolicy, ioThreads } = vmi.spec.domain;
  return ioThreadsPolicy === 'supplementalPool' ? (ioThreads?.supplementalPoolThreadCount ?? 0) : 0;
}

/** Whether disks get IO threads at all. */
export function hasIoThreads(vmi: Vmi): boolean {
  return vmi.spec.domain.ioThreadsPolicy !== undefined || dedicatedDisks(vmi).length > 0;
}

/** IO threads shared by disks, and threads that belong to one disk each. */
export interface IoThreadCounts {
  readonly shared: number;
  readonly dedicated: number;
}

/**
 * How many IO threads a VMI needs.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/iothreads/iothreads.go
 */
function ioThreadCounts(vmi: Vmi): IoThreadCounts {
  if (supplementalPoolSize(vmi) > 0) return { shared: 0, dedicated: 0 };
  const dedicated = dedicatedDisks(vmi).length;
  const others = (vmi.spec.domain.devices.disks?.length ?? 0) - dedicated;
  const limit = threadLimit(vmi);
  const shared = others + dedicated > limit ? Math.max(1, limit - dedicated) : others;
  return { shared, dedicated };
}

/** Number of IO threads of the domain; without disks a policy makes none. */
export function configureIoThreads(vmi: Vmi, domain: Domain): void {
  if (!hasIoThreads(vmi)) return;
  const pool = supplementalPoolSize(vmi);
  const { shared, dedicated } = ioThreadCounts(vmi);
  const threads = pool > 0 ? pool : shared + dedicated;
  if (threads > 0) domain.Spec.IOThreads = { IOThreads: threads };
}

/** Gives virtio disks their IO threads, disk by disk in spec order. */
export class IoThreadAssigner {
  readonly #isActive: boolean;
  readonly #pool: number;
  readonly #shared: number;
  #nextShared = 1;
  #nextDedicated: number;

  constructor(vmi: Vmi) {
    this.#isActive = hasIoThreads(vmi);
    this.#pool = supplementalPoolSize(vmi);
    this.#shared = ioThreadCounts(vmi).shared;
    this.#nextDedicated = this.#shared + 1;
  }

  /** Sets the thread of the next disk. */
  assign(disk: VmiDisk, driver: DomainDiskDriver): void {
    if (!this.#isActive || busOf(disk) !== 'virtio') return;
    if (this.#pool > 0) {
      driver.IOThreads = { IOThread: Array.from({ length: this.#pool }, (_none, index) => ({ Id: index + 1 })) };
    } else if (disk.dedicatedIOThread === true) {
      driver.IOThread = this.#nextDedicated++;
    } else {
      driver.IOThread = this.#takeShared();
    }
  }

  #takeShared(): number {
    const id = this.#nextShared;
    this.#nextShared = this.#shared === 0 ? id : (id % this.#shared) + 1;
    return id;
  }
}

/** The thread that the SCSI controller gets: where the rotation stands after all sharing virtio disks. */
export function scsiIoThread(vmi: Vmi): number | undefined {
  const disks = vmi.spec.domain.devices.disks ?? [];
  if (!disks.some((disk) => busOf(disk) === 'scsi' && disk.dedicatedIOThread === true)) return undefined;
  const { shared } = ioThreadCounts(vmi);
  if (!hasIoThreads(vmi) || shared === 0) return undefined;
  const sharing = disks.filter((disk) => busOf(disk) === 'virtio' && disk.dedicatedIOThread !== true).length;
  return (sharing % shared) + 1;
}

function dedicatedDisks(vmi: Vmi): readonly VmiDisk[] {
  return (vmi.spec.domain.devices.disks ?? []).filter((disk) => disk.dedicatedIOThread === true);
}

function threadLimit(vmi: Vmi): number {
  const { ioThreadsPolicy, cpu, resources } = vmi.spec.domain;
  if (ioThreadsPolicy === undefined || ioThreadsPolicy === 'shared') return 1;
  if (ioThreadsPolicy !== 'auto') return 0;
  // The emulator's CPU serves the IO threads too.
  if (cpu?.dedicatedCpuPlacement === true && cpu.isolateEmulatorThread === true) return 1;
  const amount = resources?.requests?.['cpu'] ?? resources?.limits?.['cpu'];
  return THREADS_PER_CPU * (amount === undefined ? 1 : Number(quantityValue(amount)));
}
