import { readFile, readdir, stat, statfs } from 'node:fs/promises';

import type { Vmi, VmiDisk } from '@virtwire/vm-model';

import { isBlockDevice, splitRdev } from '../disks/image-info.ts';
import type { ImagePort } from '../disks/ports.ts';
import { LauncherError, textOf } from '../errors.ts';
import { type ArchitectureTraits, architectureTraits } from './architecture.ts';
import { parseCpuSet } from './cpu-set.ts';
import type {
  BlockSizes,
  Circumstances,
  ConverterOptions,
  HostPciFacts,
  ImageInfo,
  NetworkDeviceInfo,
} from './circumstances.ts';
import { collectGraceFacts } from './collect-grace-facts.ts';
import { readDeviceClaims } from './device-claims.ts';
import { NO_GRACE_HOST } from './grace-facts.ts';
import { readNetworkInfo } from './network-info.ts';
import { podSriovInterfaces } from './sriov.ts';
import { blockDevice, containerDiskImage, filesystemImage, hotplugPath } from './volume-paths.ts';
import { isOn } from './vmi-traits.ts';

const CPU_SET_FILES = ['/sys/fs/cgroup/cpuset.cpus.effective', '/sys/fs/cgroup/cpuset/cpuset.cpus'];
const PCI_DEVICES = '/sys/bus/pci/devices';

/** What stays the same for a launcher's life. */
export type LauncherFacts = Pick<
  Circumstances,
  | 'hostArchitecture'
  | 'hypervisor'
  | 'hypervisorDeviceAvailable'
  | 'allowCrossArchEmulation'
  | 'firmwareAutoSelection'
  | 'firmwareDir'
  | 'logVerbosity'
  | 'paths'
  | 'environment'
  | 'hasLibvirtHookServer'
>;

/** What differs from request to request. */
export interface RequestFacts {
  readonly allowEmulation: boolean;
  readonly options: ConverterOptions | undefined;
  readonly isMigrationTarget: boolean;
  readonly cbtOverlays: ReadonlyMap<string, string>;
}

/** Gathers the circumstances of conversions in a pod. Container disks are looked at once in a launcher's life. */
export interface CircumstanceCollector {
  /** @throws {LauncherError} `ConvertFailed` when a container disk or the CPU set cannot be read. */
  collect(vmi: Vmi, request: RequestFacts): Promise<Circumstances>;
}

/** What the collector reads that tests replace. */
export interface CollectorDeps {
  readonly images: Pick<ImagePort, 'info'>;
  /** CPUs of the launcher's cgroup. */
  readonly readPodCpuSet: () => Promise<readonly number[]>;
  /** Whether a path is a block device; without it, the file system is asked. */
  readonly isBlockDevice?: (path: string) => Promise<boolean>;
  /** PCI devices of the pod's networks; without it, the downward API file is read. */
  readonly readNetworkInfo?: () => Promise<readonly NetworkDeviceInfo[]>;
  /** Whether the pod has the descriptor for IOMMUFD, which is received if it is offered; without it, there is none. */
  readonly receiveIommuDescriptor?: () => Promise<boolean>;
}

/**
 * Creates the collector of a launcher.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1150, generateConverterContext
 */
export function createCircumstanceCollector(deps: CollectorDeps, facts: LauncherFacts): CircumstanceCollector {
  const known = new Map<string, ImageInfo>();
  return {
    async collect(vmi, request) {
      const blockVolumes = await findBlockVolumes(vmi, facts, deps.isBlockDevice ?? isBlockDevice);
      const [podCpuSet, containerDisks, blockSizes, devices] = await Promise.all([
        podCpus(deps),
        inspectContainerDisks(deps, facts, vmi, known),
        readBlockSizes(vmi, facts, blockVolumes),
        collectDevices(deps, vmi, facts, request),
      ]);
      // Last: it is offered once, to a VM that is otherwise in order.
      const hasIommuFd = (await deps.receiveIommuDescriptor?.()) ?? false;
      return {
        ...facts,
        ...request,
        ...devices,
        hasIommuFd,
        blockVolumes,
        podCpuSet,
        containerDisks,
        blockSizes,
      };
    },
  };
}

type DeviceFact = 'firmwareFiles' | 'networkInfo' | 'deviceClaims' | 'emulatorPaths' | 'hostPciDevices' | 'graceHost';

async function collectDevices(
  deps: CollectorDeps,
  vmi: Vmi,
  facts: LauncherFacts,
  request: RequestFacts,
): Promise<Pick<Circumstances, DeviceFact>> {
  const [firmwareFiles, networkInfo, deviceClaims, emulatorPaths, hostPciDevices] = await Promise.all([
    listNames(facts.firmwareDir),
    request.isMigrationTarget ? [] : networkDevices(deps, vmi),
    readDeviceClaims(vmi),
    findEmulators(vmi, facts),
    readHostPciDevices(request),
  ]);
  const isGraceWanted = (request.options?.GraceHostDeviceAliases.length ?? 0) > 0;
  const graceHost = isGraceWanted ? await collectGraceFacts(assignedPciDevices(facts.environment)) : NO_GRACE_HOST;
  return { firmwareFiles, networkInfo, deviceClaims, emulatorPaths, hostPciDevices, graceHost };
}

/** Addresses that device plugins gave the pod. */
function assignedPciDevices(environment: Circumstances['environment']): readonly string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith('PCI_RESOURCE_') ? (value ?? '').split(',').filter((address) => address !== '') : [],
  );
}

/** PCI devices of the pod's networks, when the VM has SR-IOV interfaces in it. */
export async function networkDevices(
  { readNetworkInfo: read = readNetworkInfo }: Pick<CollectorDeps, 'readNetworkInfo'>,
  vmi: Vmi,
): Promise<readonly NetworkDeviceInfo[]> {
  return podSriovInterfaces(vmi).length === 0 ? [] : await read();
}

async function findBlockVolumes(
  vmi: Vmi,
  facts: LauncherFacts,
  isDevice: (path: string) => Promise<boolean>,
): Promise<ReadonlySet<string>> {
  const hotplugged = new Set(
    (vmi.status?.volumeStatus ?? []).filter((status) => status.hotplugVolume !== undefined).map(({ name }) => name),
  );
  const found = new Set<string>();
  for (const volume of vmi.spec.volumes ?? []) {
    const isClaim =
      volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined || volume.ephemeral !== undefined;
    const isHotplugged = hotplugged.has(volume.name);
    if (!isClaim && !isHotplugged) continue;
    const path = isHotplugged ? hotplugPath(facts.paths, volume.name, true) : blockDevice(volume.name);
    if (await isDevice(path)) found.add(volume.name);
  }
  return found;
}

async function podCpus(deps: CollectorDeps): Promise<readonly number[]> {
  try {
    return await deps.readPodCpuSet();
  } catch (error) {
    throw new LauncherError('ConvertFailed', `failed to read pod cpuset: ${textOf(error)}`, { cause: error });
  }
}

/**
 * CPUs that this process may use: those of its cgroup, whichever version; where no cgroup is mounted, what the
 * scheduler says.
 */
export async function readPodCpuSet(): Promise<readonly number[]> {
  for (const path of CPU_SET_FILES) {
    const text = await readFile(path, 'utf8').catch(() => '');
    if (text.trim() !== '') return parseCpuSet(text.trim());
  }
  const allowed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(await readFile('/proc/self/status', 'utf8'));
  return parseCpuSet(allowed?.[1] ?? '');
}

async function inspectContainerDisks(
  deps: CollectorDeps,
  facts: LauncherFacts,
  vmi: Vmi,
  known: Map<string, ImageInfo>,
): Promise<ReadonlyMap<string, ImageInfo>> {
  for (const [index, { name, containerDisk }] of (vmi.spec.volumes ?? []).entries()) {
    if (containerDisk === undefined || known.has(name)) continue;
    try {
      known.set(name, await deps.images.info(containerDiskImage(facts.paths, index)));
    } catch (error) {
      throw new LauncherError('ConvertFailed', `failed to get container disk info: ${textOf(error)}`, { cause: error });
    }
  }
  return new Map(known);
}

async function findEmulators(vmi: Vmi, facts: LauncherFacts): Promise<ReadonlySet<string>> {
  const guest: ArchitectureTraits = architectureTraits(vmi.spec.architecture ?? '');
  if (!facts.allowCrossArchEmulation) return new Set();
  return new Set((await pathExists(guest.emulatorPath)) ? [guest.emulatorPath] : []);
}

async function readHostPciDevices(request: RequestFacts): Promise<ReadonlyMap<string, HostPciFacts>> {
  const result = new Map<string, HostPciFacts>();
  if (request.options?.clusterConfig?.PCINUMAAwareTopologyEnabled !== true) return result;
  for (const address of await listNames(PCI_DEVICES)) {
    const text = await readFile(`${PCI_DEVICES}/${address}/numa_node`, 'utf8').catch(() => '-1');
    const node = Number(text.trim());
    result.set(address, { numaNode: node >= 0 ? node : undefined });
  }
  return result;
}

/** Sizes of the storage behind each disk that wants to show them to its guest. */
async function readBlockSizes(
  vmi: Vmi,
  facts: LauncherFacts,
  blockVolumes: ReadonlySet<string>,
): Promise<ReadonlyMap<string, BlockSizes | string>> {
  const sizes = new Map<string, BlockSizes | string>();
  for (const disk of (vmi.spec.domain.devices.disks ?? []).filter(matchesVolume)) {
    for (const path of candidatePaths(vmi, facts, disk, blockVolumes)) {
      sizes.set(path, await blockSizesOf(path).catch((error: unknown) => textOf(error)));
    }
  }
  return sizes;
}

function matchesVolume(disk: VmiDisk): boolean {
  return isOn(disk.blockSize?.matchVolume);
}

function candidatePaths(
  vmi: Vmi,
  facts: LauncherFacts,
  disk: VmiDisk,
  blockVolumes: ReadonlySet<string>,
): readonly string[] {
  const isBlock = blockVolumes.has(disk.name);
  const hostPath = vmi.spec.volumes?.find(({ name }) => name === disk.name)?.hostDisk?.path;
  return [
    hotplugPath(facts.paths, disk.name, isBlock),
    isBlock ? blockDevice(disk.name) : filesystemImage(facts.paths, disk.name, hostPath),
  ];
}

async function blockSizesOf(path: string): Promise<BlockSizes> {
  const found = await stat(path);
  if (!found.isBlockDevice()) {
    const { bsize } = await statfs(path);
    return { logical: bsize, physical: bsize, discardGranularity: bsize };
  }
  const { major, minor } = splitRdev(found.rdev);
  const queue = `/sys/dev/block/${String(major)}:${String(minor)}/queue`;
  const read = async (name: string): Promise<number> => Number((await readFile(`${queue}/${name}`, 'utf8')).trim());
  return {
    logical: await read('logical_block_size'),
    physical: await read('physical_block_size'),
    discardGranularity: await read('discard_granularity').catch(() => 0),
  };
}

async function listNames(dir: string): Promise<ReadonlySet<string>> {
  if (dir === '') return new Set();
  return new Set(await readdir(dir).catch(() => []));
}

async function pathExists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
