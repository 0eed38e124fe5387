import fc from 'fast-check';

import type { VmiDomain, VmiFirmware, VmiLaunchSecurity, VmiMemory } from '@virtwire/vm-model';

import type { Architecture } from '../converter/architecture.ts';

const bool = fc.boolean();
const state = fc.constantFrom({}, { enabled: true }, { enabled: false });

/** Text with everything that XML must escape. */
const text = fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom(...Array.from('aZ9-_. &<>"\'äß')) });

/** CPUs of the node: two cells of cores with two threads each. */
const CELL_CPUS = 64;
const CELLS = [0, 1].map((id) => ({
  id,
  cpus: Array.from({ length: CELL_CPUS }, (_none, index) => {
    const cpu = id * CELL_CPUS + index;
    const even = cpu - (cpu % 2);
    return { id: cpu, siblings: [even, even + 1] };
  }),
}));

/** The node's topology and the CPUs of it that a pod has: enough for any machine made here. */
export const NODE_TOPOLOGY = { numaCells: CELLS };
const range = (first: number, last: number): readonly number[] =>
  Array.from({ length: last - first + 1 }, (_none, index) => first + index);
export const podCpuSet = fc.constantFrom<readonly number[]>(
  range(0, 63),
  [...range(0, 15), ...range(64, 127)],
  // One thread of each core, then whole cores.
  [...range(0, 30).filter((cpu) => cpu % 2 === 0), ...range(32, 127)],
);

const cpu: fc.Arbitrary<NonNullable<VmiDomain['cpu']>> = fc.record(
  {
    sockets: fc.integer({ min: 1, max: 4 }),
    cores: fc.integer({ min: 1, max: 4 }),
    threads: fc.integer({ min: 1, max: 2 }),
    maxSockets: fc.integer({ min: 4, max: 8 }),
    model: fc.constantFrom('host-model', 'host-passthrough', 'qemu64', 'Haswell'),
    features: fc.constantFrom([{ name: 'invtsc', policy: 'require' }], [{ name: 'mpx' }], [{ name: 'aes' }]),
  },
  { requiredKeys: [] },
);

/** What a VM with host CPUs of its own asks for besides. */
const pinning = fc.constantFrom<NonNullable<VmiDomain['cpu']>>(
  {},
  { isolateEmulatorThread: true },
  { numa: { guestMappingPassthrough: {} } },
  { isolateEmulatorThread: true, numa: { guestMappingPassthrough: {} } },
  { numa: { guestMappingPassthrough: {} }, realtime: {} },
  { numa: { guestMappingPassthrough: {} }, realtime: { mask: '0-1,^1' }, isolateEmulatorThread: true },
);

const smallPages = fc.constantFrom<VmiMemory>(
  { guest: '64Mi' },
  { guest: '1Gi' },
  { guest: '3Gi' },
  { guest: '1.5Gi' },
  { guest: '100M' },
  { guest: '1Gi', maxGuest: '2Gi', reservedOverhead: { addedOverhead: '64Mi', memLock: 'Required' } },
);
const hugePages = fc.constantFrom<VmiMemory>(
  { guest: '64Mi', hugepages: { pageSize: '2Mi' } },
  { guest: '1Gi', hugepages: { pageSize: '2Mi' } },
  { guest: '3Gi', hugepages: { pageSize: '1Gi' } },
);

const kernelBoot: fc.Arbitrary<NonNullable<VmiFirmware['kernelBoot']>> = fc.constantFrom(
  { kernelArgs: 'console=ttyS0', container: { kernelPath: '/boot/vmlinuz' } },
  {
    container: {
      image: 'registry.example/kernel:v1',
      imagePullPolicy: 'Always',
      imagePullSecret: 'pull',
      kernelPath: '/boot/vmlinuz',
      initrdPath: '/boot/initrd.img',
    },
  },
);

const firmware: fc.Arbitrary<VmiFirmware> = fc.record(
  {
    serial: fc.constantFrom('e4686d2c', ''),
    bootloader: fc.constantFrom<NonNullable<VmiFirmware['bootloader']>>(
      { bios: { useSerial: true } },
      { bios: {} },
      { efi: { secureBoot: false } },
      { efi: { secureBoot: true } },
      { efi: { persistent: true } },
    ),
    kernelBoot,
    acpi: fc.constant({ slicNameRef: 'slic' }),
  },
  { requiredKeys: [] },
);

const clock: fc.Arbitrary<NonNullable<VmiDomain['clock']>> = fc.record(
  {
    utc: fc.constantFrom({}, { offsetSeconds: -120 }),
    timezone: fc.constant('Europe/Berlin'),
    timer: fc.record(
      {
        rtc: fc.constantFrom({}, { tickPolicy: 'catchup' }, { track: 'guest' }, { track: 'wall', present: true }),
        pit: fc.constantFrom({}, { tickPolicy: 'delay' }, { present: false }),
        hpet: fc.constantFrom({ present: false }, { present: true }, { tickPolicy: 'delay' }),
        kvm: fc.constantFrom({}, { present: false }),
        hyperv: fc.constantFrom({}, { present: false }),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

const hyperv = fc.record(
  {
    relaxed: state,
    vapic: state,
    spinlocks: fc.constantFrom({}, { spinlocks: 8191 }),
    vpindex: state,
    runtime: state,
    synic: state,
    synictimer: fc.constantFrom({}, { direct: {} }, { direct: { enabled: false } }),
    reset: state,
    vendorid: fc.constantFrom({ vendorid: 'Virtwire' }),
    frequencies: state,
    reenlightenment: state,
    tlbflush: fc.constantFrom({}, { enabled: false }, { direct: {}, extended: { enabled: false } }),
    ipi: state,
    evmcs: state,
  },
  { requiredKeys: [] },
);

const features: fc.Arbitrary<NonNullable<VmiDomain['features']>> = fc.record(
  {
    apic: fc.constantFrom({}, { enabled: false }, { endOfInterrupt: true }),
    acpi: state,
    smm: state,
    pvspinlock: state,
    kvm: fc.record({ hidden: bool }, { requiredKeys: [] }),
    hyperv,
    hypervPassthrough: fc.constantFrom({ enabled: true }, { enabled: false }),
  },
  { requiredKeys: [] },
);

const ioThreads = fc.constantFrom<Pick<VmiDomain, 'ioThreadsPolicy' | 'ioThreads'>>(
  {},
  {},
  { ioThreadsPolicy: 'shared' },
  { ioThreadsPolicy: 'auto' },
  { ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: 3 } },
);

const launchSecurity = fc.constantFrom<VmiLaunchSecurity>(
  { sev: {} },
  { sev: { policy: { encryptedState: true }, session: 'c2Vzc2lvbg==', dhCert: 'Y2VydA==', attestation: {} } },
  { snp: {} },
  { tdx: {} },
);

/** Everything of a VMI's domain that is no device. */
export type Machine = Omit<VmiDomain, 'devices'>;

const parts = fc.record(
  {
    cpu,
    memory: smallPages,
    hugePages,
    pinning,
    resources: fc.constantFrom<NonNullable<VmiDomain['resources']>>(
      { requests: { cpu: '2', memory: '1Gi' } },
      { limits: { cpu: '3' } },
      { requests: { cpu: '500m' }, overcommitGuestOverhead: true },
    ),
    firmware,
    clock,
    features,
    chassis: fc.record({ manufacturer: text, version: text, serial: text, asset: text, sku: text }),
    ioThreads,
    rebootPolicy: fc.constantFrom<'Terminate' | 'Reboot'>('Terminate', 'Reboot'),
    isEncrypted: fc.integer({ min: 1, max: 12 }).map((number) => number === 1),
    launchSecurity,
    hasOwnCpus: fc.integer({ min: 1, max: 4 }).map((number) => number === 1),
  },
  { requiredKeys: ['memory', 'hugePages', 'pinning', 'ioThreads', 'isEncrypted', 'launchSecurity', 'hasOwnCpus'] },
);

/** Machines that admission takes on an architecture. */
export function arbitraryMachine(architecture: Architecture): fc.Arbitrary<Machine> {
  return parts.map((given) => {
    const { hasOwnCpus, isEncrypted, launchSecurity: security, ioThreads: threads, pinning: pins, ...rest } = given;
    const { cpu: topology, memory, hugePages: pages, firmware: wanted, features: some, ...others } = rest;
    const needsPages = hasOwnCpus && pins.numa !== undefined;
    const protection = isEncrypted ? protectionOf(architecture, security) : undefined;
    const boots = protection === undefined ? wanted : { ...wanted, bootloader: { efi: { secureBoot: false } } };
    const fitting = firmwareOf(architecture, boots);
    return {
      ...others,
      ...threads,
      memory: needsPages ? pages : memory,
      ...(topology === undefined && !hasOwnCpus ? {} : { cpu: { ...topology, ...(hasOwnCpus ? owned(pins) : {}) } }),
      ...(fitting === undefined ? {} : { firmware: fitting }),
      ...featuresOf(architecture, some, fitting),
      ...(protection === undefined ? {} : { launchSecurity: protection }),
    };
  });
}

function owned(pins: NonNullable<VmiDomain['cpu']>): NonNullable<VmiDomain['cpu']> {
  return { ...pins, dedicatedCpuPlacement: true };
}

/** arm64 encrypts no guests; s390x has a way of its own, which names nothing. */
function protectionOf(architecture: Architecture, security: VmiLaunchSecurity): VmiLaunchSecurity | undefined {
  if (architecture === 'arm64') return undefined;
  return architecture === 's390x' ? {} : security;
}

/** Firmware files: s390x has none, arm64 none with Secure Boot. */
function firmwareOf(architecture: Architecture, firmware: VmiFirmware | undefined): VmiFirmware | undefined {
  if (firmware?.bootloader?.efi === undefined || architecture === 'amd64') return firmware;
  return { ...firmware, bootloader: architecture === 's390x' ? { bios: {} } : { efi: { secureBoot: false } } };
}

/** EFI does not boot without ACPI, and Secure Boot is refused without SMM. */
function featuresOf(
  architecture: Architecture,
  features: VmiDomain['features'],
  firmware: VmiFirmware | undefined,
): Pick<VmiDomain, 'features'> {
  const efi = firmware?.bootloader?.efi;
  const isEfi = efi !== undefined || (architecture === 'arm64' && firmware?.bootloader === undefined);
  const needed = {
    ...(isEfi ? { acpi: {} } : {}),
    ...(efi !== undefined && efi.secureBoot !== false ? { smm: {} } : {}),
  };
  return features === undefined && Object.keys(needed).length === 0 ? {} : { features: { ...features, ...needed } };
}
