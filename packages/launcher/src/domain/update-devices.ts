import { renderDomainElementXml } from '@virtwire/vm-model';
import type { DomainDisk, DomainInterface, DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import { backendPath } from '../converter/disk-backend.ts';
import { textOf } from '../errors.ts';
import type { DeviceStep } from './decide-devices.ts';
import { decideDiskSteps, decideInterfaceSteps } from './decide-devices.ts';
import type { BlockInfo, DomainRef, LibvirtPort } from './libvirt-port.ts';

/** A new size of a disk for libvirt; flags 1 bytes, 2 size of the device. */
export interface DiskGrowth {
  readonly bytes: bigint;
  readonly flags: number;
}

/** What changing devices needs of the pod. `O` are the options of the request. */
export interface DevicePreparation<O> {
  /** The bytes of a disk can be opened now. */
  isReady(disk: DomainDisk): Promise<boolean>;
  /** A disk with the modes that its storage takes. */
  completeDisk(disk: DomainDisk): Promise<DomainDisk>;
  /** Removes what was made for a disk that is gone. */
  discardDisk(vmi: Vmi, disk: DomainDisk): Promise<void>;
  /**
   * The size in bytes that a disk can have, as far as it can be told without libvirt; undefined when it cannot. As long
   * as it does not grow, libvirt is not asked about the disk.
   */
  possibleSize(disk: DomainDisk): Promise<bigint | undefined>;
  /** The size that a disk can have now; undefined when it has it. */
  growth(disk: DomainDisk, block: BlockInfo): Promise<DiskGrowth | undefined>;
  /** Second phase of the pod network for these interfaces. */
  completeInterfaces(
    vmi: Vmi,
    interfaces: readonly DomainInterface[],
    options: O | undefined,
  ): Promise<readonly DomainInterface[]>;
}

/** What the updater needs. */
export interface DeviceUpdaterDeps<O> {
  readonly libvirt: Pick<
    LibvirtPort,
    'attachDevice' | 'detachDevice' | 'updateDevice' | 'getBlockInfo' | 'blockResize'
  >;
  readonly devices: DevicePreparation<O>;
  readonly hotplugDir: string;
  readonly sizes: DiskSizes;
}

/** By path of a disk, the possible size for which its growth was last decided. Holds the disks of the last update. */
export type DiskSizes = Map<string, bigint>;

/** A VM, as it is and as it should be. */
export interface DeviceUpdate<O> {
  readonly vmi: Vmi;
  readonly domain: DomainRef;
  readonly live: DomainSpec;
  readonly wanted: DomainSpec;
  readonly options: O | undefined;
  readonly log: Logger;
}

/** LIVE and CONFIG. */
const LIVE_AND_CONFIG = 3;

const nameOf = ({ Alias, Target }: DomainDisk): string => Alias?.Name ?? Target?.Device ?? '';

/** Without what is the launcher's own record of a disk. */
function renderDisk(disk: DomainDisk): string {
  return renderDomainElementXml('Disk', 'disk', { ...disk, FilesystemOverhead: undefined, Capacity: undefined });
}

const renderInterface = (nic: DomainInterface): string => renderDomainElementXml('Interface', 'interface', nic);

/**
 * Brings the devices of a running domain to what its VMI asks for; a failing change ends it.
 *
 * @returns whether something was changed.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1485
 */
export async function updateDevices<O>(deps: DeviceUpdaterDeps<O>, update: DeviceUpdate<O>): Promise<boolean> {
  const { vmi, live, wanted } = update;
  const disks = decideDiskSteps(live, wanted, deps.hotplugDir);
  for (const step of disks) await execute(deps, update, step);
  await growDisks(deps, update);
  const interfaces = decideInterfaceSteps(vmi, live, wanted);
  for (const step of interfaces) await execute(deps, update, step);
  return disks.length + interfaces.length > 0;
}

async function execute<O>(deps: DeviceUpdaterDeps<O>, update: DeviceUpdate<O>, step: DeviceStep): Promise<void> {
  switch (step.kind) {
    case 'detachDisk':
    case 'attachDisk':
    case 'changeMedium':
      await executeDisk(deps, update, step.kind, step.disk);
      return;
    case 'plugInterfaces':
      await plugInterfaces(deps, update, step.interfaces);
      return;
    case 'unplugInterface':
      update.log.info(`preparing to hot-unplug ${step.nic.Alias?.Name ?? ''}`);
      await deps.libvirt.detachDevice(update.domain, renderInterface(step.nic), LIVE_AND_CONFIG);
      return;
    case 'setLink':
      await deps.libvirt.updateDevice(update.domain, renderInterface(step.nic), LIVE_AND_CONFIG);
  }
}

async function executeDisk<O>(
  { libvirt, devices }: DeviceUpdaterDeps<O>,
  { vmi, domain, log }: DeviceUpdate<O>,
  kind: 'detachDisk' | 'attachDisk' | 'changeMedium',
  disk: DomainDisk,
): Promise<void> {
  const what = `disk ${nameOf(disk)}, target ${disk.Target?.Device ?? ''}`;
  if (kind === 'detachDisk') {
    log.info(`Detaching ${what}`);
    await libvirt.detachDevice(domain, renderDisk(disk), LIVE_AND_CONFIG);
    await devices.discardDisk(vmi, disk);
    return;
  }
  if (backendPath(disk) !== '' && !(await devices.isReady(disk))) return;
  if (kind === 'attachDisk') {
    log.info(`Attaching ${what}`);
    await libvirt.attachDevice(domain, renderDisk(await devices.completeDisk(disk)), LIVE_AND_CONFIG);
    return;
  }
  log.info(`Updating ${what}`);
  await libvirt.updateDevice(domain, renderDisk(disk), LIVE_AND_CONFIG);
}

async function plugInterfaces<O>(
  { libvirt, devices }: DeviceUpdaterDeps<O>,
  { vmi, domain, options, log }: DeviceUpdate<O>,
  interfaces: readonly DomainInterface[],
): Promise<void> {
  for (const { Alias } of interfaces) log.info(`will hot plug ${Alias?.Name ?? ''}`);
  for (const nic of await devices.completeInterfaces(vmi, interfaces, options)) {
    log.info(`will hot plug "${nic.Alias?.Name ?? ''}" with MAC "${nic.MAC?.MAC ?? ''}"`);
    await libvirt.attachDevice(domain, renderInterface(nic), LIVE_AND_CONFIG);
  }
}

/**
 * Lets a guest see that the claims of its disks have become larger. FM-4.7: libvirt, which waits for the storage, is
 * asked about a disk only when the disk may have grown since it was asked last.
 */
async function growDisks<O>(deps: DeviceUpdaterDeps<O>, update: DeviceUpdate<O>): Promise<void> {
  const before = new Map(deps.sizes);
  deps.sizes.clear();
  for (const disk of update.wanted.Devices.Disks ?? []) {
    const path = sourcePath(disk);
    if (disk.Capacity === undefined || path === '') continue;
    const possible = await deps.devices.possibleSize(disk);
    const decided = before.get(path);
    if (possible !== undefined && decided !== undefined && possible <= decided) deps.sizes.set(path, decided);
    else if ((await grow(deps, update, disk, path)) && possible !== undefined) deps.sizes.set(path, possible);
  }
}

const sourcePath = ({ Source }: DomainDisk): string => Source?.File ?? Source?.Dev ?? '';

/** @returns whether the disk has its size now. That it has not is no reason to fail the sync. */
async function grow<O>(
  { libvirt, devices }: DeviceUpdaterDeps<O>,
  { domain, log }: DeviceUpdate<O>,
  disk: DomainDisk,
  path: string,
): Promise<boolean> {
  try {
    const block = await libvirt.getBlockInfo(domain, path);
    if (block.capacity === 0n) {
      log.warn(`domain disk ${nameOf(disk)} returned capacity 0`);
      return false;
    }
    const growth = await devices.growth(disk, block);
    if (growth === undefined) return true;
    const { bytes, flags } = growth;
    log.info(`resizing disk ${nameOf(disk)} with flags ${flags} with size ${bytes}`);
    await libvirt.blockResize(domain, path, bytes, flags);
    return true;
  } catch (caught) {
    log.error({ reason: textOf(caught) }, `failed to expand disk ${nameOf(disk)}`);
    return false;
  }
}
