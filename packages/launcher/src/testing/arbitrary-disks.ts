import fc from 'fast-check';

import type { DiskBus, VmiDisk, Volume, VolumeStatus } from '@virtwire/vm-model';

const bool = fc.boolean();
const isClaim = ({ persistentVolumeClaim, dataVolume }: Omit<Volume, 'name'>): boolean =>
  persistentVolumeClaim !== undefined || dataVolume !== undefined;

const source: fc.Arbitrary<Omit<Volume, 'name'>> = fc.constantFrom<Omit<Volume, 'name'>>(
  { containerDisk: { image: 'registry.example/os:v1' } },
  { containerDisk: { image: 'registry.example/os', path: '/disk/a.img', imagePullSecret: 'pull' } },
  { emptyDisk: { capacity: '1500Mi' } },
  { cloudInitNoCloud: { userData: '#cloud-config', networkData: 'version: 2' } },
  { cloudInitNoCloud: { userDataBase64: 'I2Nsb3VkLWNvbmZpZw==', networkDataSecretRef: { name: 'n' } } },
  { cloudInitConfigDrive: { userData: '#cloud-config', networkDataBase64: 'dmVyc2lvbjogMg==' } },
  { cloudInitConfigDrive: { secretRef: { name: 's' } } },
  { hostDisk: { path: '/data/a.img', type: 'DiskOrCreate', capacity: '1Gi' } },
  { hostDisk: { path: '/data/b.img', type: 'Disk', shared: true } },
  { persistentVolumeClaim: { claimName: 'c' } },
  { persistentVolumeClaim: { claimName: 'c', readOnly: true, hotpluggable: true } },
  { dataVolume: { name: 'd' } },
  { dataVolume: { name: 'd', hotpluggable: true } },
  { ephemeral: { persistentVolumeClaim: { claimName: 'c', readOnly: true } } },
  { configMap: { name: 'm', volumeLabel: 'config', optional: true } },
  { secret: { secretName: 's', volumeLabel: 'keys' } },
  { serviceAccount: { serviceAccountName: 'default' } },
  { downwardAPI: { fields: [], volumeLabel: 'about' } },
  { sysprep: { configMap: { name: 'm' } } },
  { sysprep: { secret: { name: 's' } } },
);

const bus = fc.constantFrom<DiskBus[]>('virtio', 'sata', 'scsi', 'usb');

type Kind = Pick<VmiDisk, 'disk' | 'cdrom' | 'lun'>;

const kind: fc.Arbitrary<Kind> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ disk: fc.record({ bus, readonly: bool }, { requiredKeys: [] }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      cdrom: fc.record(
        {
          bus: fc.constantFrom('sata' as const, 'scsi' as const),
          readonly: bool,
          tray: fc.constantFrom<'open' | 'closed'>('open', 'closed'),
        },
        { requiredKeys: [] },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      lun: fc.record(
        { bus: fc.constant('scsi' as const), readonly: bool, reservation: bool },
        { requiredKeys: ['bus'] },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.constant({}) },
);

const options: fc.Arbitrary<Partial<VmiDisk>> = fc.record(
  {
    cache: fc.constantFrom('none', 'writeback', 'writethrough'),
    io: fc.constantFrom('threads'),
    errorPolicy: fc.constantFrom('stop', 'ignore', 'report', 'enospace'),
    serial: fc.string({ minLength: 1, maxLength: 20, unit: fc.constantFrom(...Array.from('aZ9-_.')) }),
    dedicatedIOThread: bool,
    tag: fc.constant('fast'),
    changedBlockTracking: bool,
    blockSize: fc.constantFrom<NonNullable<VmiDisk['blockSize']>>(
      { custom: { logical: 512, physical: 4096 } },
      { custom: { logical: 4096, physical: 4096, discardGranularity: 8192 } },
      { matchVolume: {} },
      { matchVolume: { enabled: false } },
    ),
  },
  { requiredKeys: [] },
);

/** One disk with its volume. */
const drive = fc.record(
  {
    source,
    kind,
    options,
    isShareable: bool,
    /** Has a place in the order of booting. */
    boots: bool,
    hasAddress: bool,
    isBlock: bool,
    isTracked: bool,
    /** The claim came while the VM ran, with the phase that it is in. */
    hotplugPhase: fc.constantFrom('Ready', 'MountedToPod', 'Pending'),
    claimInfo: fc.constantFrom<NonNullable<VolumeStatus['persistentVolumeClaimInfo']>>(
      { filesystemOverhead: '0.055', capacity: { storage: '2Gi' }, requests: { storage: '1Gi' } },
      { capacity: { storage: '1Gi' } },
      {},
    ),
  },
  {
    requiredKeys: ['source', 'kind', 'options', 'isBlock', 'isTracked'],
  },
);

/** Disks as drawn; `layOutDisks` makes VMI parts of them. */
export const drives = fc.record({
  disks: fc.array(drive, { maxLength: 6 }),
  hasEmptyDrive: bool,
  hasMetricsVolume: bool,
  hasStatus: bool,
  filesystems: fc.constantFrom<readonly Omit<Volume, 'name'>[]>(
    [],
    [],
    [],
    [{ configMap: { name: 'm' } }],
    [{ persistentVolumeClaim: { claimName: 'c' } }, { secret: { secretName: 's' } }],
  ),
});

type Drives = typeof drives extends fc.Arbitrary<infer T> ? T : never;
type Drive = Drives['disks'][number];

/** What drawn disks come to. */
export interface DiskParts {
  readonly disks: VmiDisk[];
  readonly volumes: Volume[];
  readonly filesystems: { name: string; virtiofs: object }[];
  readonly volumeStatus: VolumeStatus[];
  readonly blockVolumes: string[];
  readonly trackedVolumes: string[];
}

/**
 * Disks, volumes and statuses that fit each other.
 *
 * @param mayPlace whether disks may name their place on the root bus, where nothing else has been put.
 */
export function layOutDisks(given: Drives, mayPlace: boolean): DiskParts {
  const parts: DiskParts = {
    disks: [],
    volumes: [],
    filesystems: [],
    volumeStatus: [],
    blockVolumes: [],
    trackedVolumes: [],
  };
  for (const [index, drawn] of given.disks.entries()) addDisk(parts, drawn, index, { ...given, mayPlace });
  if (given.hasEmptyDrive) parts.disks.push({ name: 'empty', cdrom: { bus: 'sata' } });
  if (given.hasMetricsVolume) {
    parts.disks.push({ name: 'metrics', disk: { bus: 'virtio' } });
    addVolume(parts, { name: 'metrics', downwardMetrics: {} }, given.hasStatus);
  }
  for (const [index, volume] of given.filesystems.entries()) {
    const name = `f${String(index)}`;
    parts.filesystems.push({ name, virtiofs: {} });
    addVolume(parts, { name, ...volume }, given.hasStatus);
  }
  return parts;
}

/** Admission refuses SATA disks that are read-only; a disk of no bus becomes one of them. */
function writable(disk: NonNullable<VmiDisk['disk']>): NonNullable<VmiDisk['disk']> {
  return disk.bus === undefined || disk.bus === 'sata' ? { ...disk, readonly: false } : disk;
}

function addVolume(parts: DiskParts, volume: Volume, hasStatus: boolean, status: Partial<VolumeStatus> = {}): void {
  parts.volumes.push(volume);
  if (hasStatus) parts.volumeStatus.push({ name: volume.name, target: '', ...status });
}

function addDisk(
  parts: DiskParts,
  drawn: Drive,
  index: number,
  { hasStatus, mayPlace }: { readonly hasStatus: boolean; readonly mayPlace: boolean },
): void {
  const name = `d${String(index)}`;
  // A LUN is a device of the node, and nothing else is one.
  const isLun = drawn.kind.lun !== undefined;
  const volume = isLun ? { persistentVolumeClaim: { claimName: 'lun' } } : drawn.source;
  const isBlock = isLun || (drawn.isBlock && (isClaim(volume) || volume.ephemeral !== undefined));
  const isHotplugged = hasStatus && drawn.hotplugPhase !== undefined && isClaim(volume) && !isLun;
  if (isBlock) parts.blockVolumes.push(name);
  if (drawn.isTracked && (isClaim(volume) || volume.hostDisk !== undefined) && !isLun) parts.trackedVolumes.push(name);
  addVolume(parts, { name, ...volume }, hasStatus, {
    ...(isHotplugged ? { phase: drawn.hotplugPhase ?? '', hotplugVolume: {} } : {}),
    ...(isClaim(volume) && drawn.claimInfo !== undefined
      ? { persistentVolumeClaimInfo: { ...drawn.claimInfo, ...(isBlock ? { volumeMode: 'Block' } : {}) } }
      : {}),
  });
  parts.disks.push({ ...drawn.options, ...diskOf(drawn, index, mayPlace), name });
}

function diskOf(drawn: Drive, index: number, mayPlace: boolean): Partial<VmiDisk> {
  const { kind: given, isShareable, boots, hasAddress } = drawn;
  const slot = (0x10 + index).toString(16);
  const place =
    mayPlace && hasAddress === true && given.disk?.bus === 'virtio' ? { pciAddress: `0000:00:${slot}.0` } : {};
  const target = given.disk === undefined ? given : { disk: { ...writable(given.disk), ...place } };
  // Only raw images can be shared.
  const isShared = isShareable === true && given.disk !== undefined && isClaim(drawn.source) && !drawn.isTracked;
  return {
    ...target,
    ...(isShared ? { shareable: true, cache: 'none' } : {}),
    ...(boots === true ? { bootOrder: index + 1 } : {}),
  };
}
