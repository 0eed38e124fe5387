import type { DomainSpecDevices, Vmi, VmiDisk, VmiDomain, VmiInterface, VmiSpec, Volume } from '@virtwire/vm-model';
import { amount, count, flag, int32, integer, list, object, port, table, text } from './rules.ts';
import type { Report, Rule, RulesOf } from './rules.ts';

type Of<T> = NonNullable<T>;
type Item<T> = Of<T> extends (infer E)[] ? E : never;
type Firmware = Of<VmiDomain['firmware']>;
type Features = Of<VmiDomain['features']>;
type Hyperv = Of<Features['hyperv']>;
type Clock = Of<VmiDomain['clock']>;
type Timers = Of<Clock['timer']>;
type Metadata = Vmi['metadata'];

const texts = list(text);
const state = object({ enabled: flag } satisfies RulesOf<Of<Features['acpi']>>);
const timer = object({ present: flag, tickPolicy: text, track: text } satisfies RulesOf<Of<Timers['rtc']>>);

const metadata = object({ labels: table(text), annotations: table(text) } satisfies RulesOf<Metadata>);

const disk = object({
  disk: object({ bus: text, readonly: flag, pciAddress: text } satisfies RulesOf<Of<VmiDisk['disk']>>),
  cdrom: object({ bus: text, readonly: flag, tray: text } satisfies RulesOf<Of<VmiDisk['cdrom']>>),
  lun: object({ bus: text, readonly: flag, reservation: flag } satisfies RulesOf<Of<VmiDisk['lun']>>),
  bootOrder: integer(1, 2 ** 31 - 1, 'a whole number, 1 or more'),
  serial: text,
  dedicatedIOThread: flag,
  cache: text,
  io: text,
  tag: text,
  blockSize: object({
    custom: object({
      logical: count,
      physical: count,
      discardGranularity: count,
    } satisfies RulesOf<Of<Of<VmiDisk['blockSize']>['custom']>>),
    matchVolume: state,
  } satisfies RulesOf<Of<VmiDisk['blockSize']>>),
  shareable: flag,
  errorPolicy: text,
  changedBlockTracking: flag,
} satisfies RulesOf<VmiDisk>);

const nic = object({
  model: text,
  bridge: object(),
  masquerade: object(),
  ports: list(object({ name: text, protocol: text, port } satisfies RulesOf<Item<VmiInterface['ports']>>)),
  portRanges: list(
    object({ name: text, protocol: text, start: port, end: port } satisfies RulesOf<Item<VmiInterface['portRanges']>>),
  ),
  macAddress: text,
  bootOrder: integer(1, 2 ** 31 - 1, 'a whole number, 1 or more'),
  pciAddress: text,
  dhcpOptions: object({
    bootFileName: text,
    tftpServerName: text,
    ntpServers: texts,
    privateOptions: list(
      object({ option: integer(224, 254), value: text } satisfies RulesOf<
        Item<Of<VmiInterface['dhcpOptions']>['privateOptions']>
      >),
    ),
  } satisfies RulesOf<Of<VmiInterface['dhcpOptions']>>),
  tag: text,
  acpiIndex: count,
  state: text,
} satisfies RulesOf<VmiInterface>);

const devices = object({
  disks: list(disk),
  interfaces: list(nic),
  inputs: list(object({ name: text, type: text, bus: text } satisfies RulesOf<Item<DomainSpecDevices['inputs']>>)),
  filesystems: list(object()),
  gpus: list(object()),
  hostDevices: list(object()),
  watchdog: object({ name: text, i6300esb: object(), diag288: object() } satisfies RulesOf<
    Of<DomainSpecDevices['watchdog']>
  >),
  rng: object(),
  sound: object({ name: text, model: text } satisfies RulesOf<Of<DomainSpecDevices['sound']>>),
  tpm: object({ enabled: flag, persistent: flag } satisfies RulesOf<Of<DomainSpecDevices['tpm']>>),
  video: object({ type: text } satisfies RulesOf<Of<DomainSpecDevices['video']>>),
  panicDevices: list(object({ model: text } satisfies RulesOf<Item<DomainSpecDevices['panicDevices']>>)),
  downwardMetrics: object(),
  clientPassthrough: object(),
  blockMultiQueue: flag,
  networkInterfaceMultiqueue: flag,
  useVirtioTransitional: flag,
  disableHotplug: flag,
  logSerialConsole: flag,
  autoattachPodInterface: flag,
  autoattachGraphicsDevice: flag,
  autoattachSerialConsole: flag,
  autoattachMemBalloon: flag,
  autoattachInputDevice: flag,
  autoattachVSOCK: flag,
} satisfies RulesOf<DomainSpecDevices>);

const cpu = object({
  cores: count,
  sockets: count,
  maxSockets: count,
  threads: count,
  model: text,
  features: list(object({ name: text, policy: text } satisfies RulesOf<Item<Of<VmiDomain['cpu']>['features']>>)),
  dedicatedCpuPlacement: flag,
  isolateEmulatorThread: flag,
  numa: object(),
  realtime: object(),
} satisfies RulesOf<Of<VmiDomain['cpu']>>);

const firmware = object({
  uuid: text,
  serial: text,
  bootloader: object({
    bios: object({ useSerial: flag } satisfies RulesOf<Of<Of<Firmware['bootloader']>['bios']>>),
    efi: object({ secureBoot: flag, persistent: flag } satisfies RulesOf<Of<Of<Firmware['bootloader']>['efi']>>),
  } satisfies RulesOf<Of<Firmware['bootloader']>>),
  kernelBoot: object({
    kernelArgs: text,
    container: object({ image: text, kernelPath: text, initrdPath: text } satisfies RulesOf<
      Of<Of<Firmware['kernelBoot']>['container']>
    >),
  } satisfies RulesOf<Of<Firmware['kernelBoot']>>),
  acpi: object(),
} satisfies RulesOf<Firmware>);

const hyperv = object({
  relaxed: state,
  vapic: state,
  spinlocks: object({ enabled: flag, spinlocks: count } satisfies RulesOf<Of<Hyperv['spinlocks']>>),
  vpindex: state,
  runtime: state,
  synic: state,
  synictimer: object({ enabled: flag, direct: state } satisfies RulesOf<Of<Hyperv['synictimer']>>),
  reset: state,
  vendorid: object({ enabled: flag, vendorid: text } satisfies RulesOf<Of<Hyperv['vendorid']>>),
  frequencies: state,
  reenlightenment: state,
  tlbflush: object({ enabled: flag, direct: state, extended: state } satisfies RulesOf<Of<Hyperv['tlbflush']>>),
  ipi: state,
  evmcs: state,
} satisfies RulesOf<Hyperv>);

const domain = object({
  resources: object({ requests: table(amount), limits: table(amount) } satisfies RulesOf<Of<VmiDomain['resources']>>),
  cpu,
  memory: object({
    guest: amount,
    maxGuest: amount,
    hugepages: object({ pageSize: text } satisfies RulesOf<Of<Of<VmiDomain['memory']>['hugepages']>>),
    reservedOverhead: object({ addedOverhead: amount, memLock: text } satisfies RulesOf<
      Of<Of<VmiDomain['memory']>['reservedOverhead']>
    >),
  } satisfies RulesOf<Of<VmiDomain['memory']>>),
  machine: object({ type: text } satisfies RulesOf<Of<VmiDomain['machine']>>),
  firmware,
  clock: object({
    utc: object({ offsetSeconds: int32 } satisfies RulesOf<Of<Clock['utc']>>),
    timezone: text,
    timer: object({ hpet: timer, kvm: timer, pit: timer, rtc: timer, hyperv: timer } satisfies RulesOf<Timers>),
  } satisfies RulesOf<Clock>),
  features: object({
    acpi: state,
    apic: object({ enabled: flag, endOfInterrupt: flag } satisfies RulesOf<Of<Features['apic']>>),
    hyperv,
    hypervPassthrough: state,
    smm: state,
    kvm: object({ hidden: flag } satisfies RulesOf<Of<Features['kvm']>>),
    pvspinlock: state,
  } satisfies RulesOf<Features>),
  devices,
  ioThreadsPolicy: text,
  ioThreads: object({ supplementalPoolThreadCount: count } satisfies RulesOf<Of<VmiDomain['ioThreads']>>),
  chassis: object({
    manufacturer: text,
    version: text,
    serial: text,
    asset: text,
    sku: text,
  } satisfies RulesOf<Of<VmiDomain['chassis']>>),
  launchSecurity: object(),
  rebootPolicy: text,
} satisfies RulesOf<VmiDomain>);

const claim = object({ claimName: text, readOnly: flag, hotpluggable: flag } satisfies RulesOf<
  Of<Volume['persistentVolumeClaim']>
>);
const cloudInit = object({
  userData: text,
  userDataBase64: text,
  networkData: text,
  networkDataBase64: text,
  secretRef: object(),
  networkDataSecretRef: object(),
} satisfies RulesOf<Of<Volume['cloudInitNoCloud']>>);

const volume = object({
  hostDisk: object({ path: text, type: text, capacity: amount, shared: flag } satisfies RulesOf<
    Of<Volume['hostDisk']>
  >),
  persistentVolumeClaim: claim,
  cloudInitNoCloud: cloudInit,
  cloudInitConfigDrive: cloudInit,
  containerDisk: object({ image: text, path: text } satisfies RulesOf<Of<Volume['containerDisk']>>),
  ephemeral: object({ persistentVolumeClaim: claim } satisfies RulesOf<Of<Volume['ephemeral']>>),
  emptyDisk: object({ capacity: amount } satisfies RulesOf<Of<Volume['emptyDisk']>>),
} satisfies RulesOf<Volume>);

const probe = object({
  initialDelaySeconds: count,
  timeoutSeconds: count,
  periodSeconds: count,
  successThreshold: count,
  failureThreshold: count,
} satisfies RulesOf<Of<VmiSpec['livenessProbe']>>);

const spec = object({
  domain,
  architecture: text,
  networks: list(
    object({
      pod: object({ vmNetworkCIDR: text, vmIPv6NetworkCIDR: text } satisfies RulesOf<
        Of<Item<VmiSpec['networks']>['pod']>
      >),
    } satisfies RulesOf<Item<VmiSpec['networks']>>),
  ),
  volumes: list(volume),
  terminationGracePeriodSeconds: integer(0, Number.MAX_SAFE_INTEGER, 'a whole number of seconds, 0 or more'),
  evictionStrategy: text,
  startStrategy: text,
  accessCredentials: list(object()),
  livenessProbe: probe,
  readinessProbe: probe,
  hostname: text,
  subdomain: text,
  nodeSelector: table(text),
  dnsPolicy: text,
  dnsConfig: object({ nameservers: texts, searches: texts, options: list(object()) } satisfies RulesOf<
    Of<VmiSpec['dnsConfig']>
  >),
} satisfies RulesOf<VmiSpec>);

const vmiRule: Rule = object({ metadata, spec } satisfies RulesOf<Vmi>);

/** Checks the types of the fields that are read before or at a start; names and unknown fields are passed over. */
export function checkTypes(report: Report, vmi: unknown): void {
  vmiRule(report, '', vmi);
}
