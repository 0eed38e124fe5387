import fc from 'fast-check';

import {
  type DiskBus,
  type Vmi,
  type VmiDisk,
  type VmiDomain,
  type VmiInput,
  type VmiInterface,
  type Volume,
  applyVmiDefaults,
  clusterDefaults,
} from '@virtwire/vm-model';

import { circumstancesFromJson } from '../converter/circumstances-json.ts';
import type { Architecture } from '../converter/architecture.ts';
import type { Circumstances } from '../converter/circumstances.ts';

/** A VMI as a client would write it, with the circumstances it is converted in. */
export interface ArbitraryConversion {
  readonly vmi: Vmi;
  readonly circumstances: Circumstances;
}

const UUID = 'f1f1f1f1-0000-4000-8000-000000000001';
const bool = fc.boolean();
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const state = fc.constantFrom({}, { enabled: true }, { enabled: false });

/** Text with everything that XML must escape. */
const text = fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom(...Array.from('aZ9-_. &<>"\'äß')) });

const source: fc.Arbitrary<Omit<Volume, 'name'>> = fc.constantFrom<Omit<Volume, 'name'>>(
  { containerDisk: { image: 'registry.example/os:v1' } },
  { emptyDisk: { capacity: '1500Mi' } },
  { cloudInitNoCloud: { userData: '#cloud-config' } },
  { cloudInitConfigDrive: { userData: '#cloud-config' } },
  { hostDisk: { path: '/data/a.img', type: 'DiskOrCreate', capacity: '1Gi' } },
  { persistentVolumeClaim: { claimName: 'c' } },
  { dataVolume: { name: 'd' } },
  { ephemeral: { persistentVolumeClaim: { claimName: 'c' } } },
  { configMap: { name: 'm' } },
  { secret: { secretName: 's' } },
  { serviceAccount: { serviceAccountName: 'default' } },
  { downwardAPI: {} },
  { sysprep: { configMap: { name: 'm' } } },
);

const bus = fc.constantFrom<DiskBus[]>('virtio', 'sata', 'scsi', 'usb');

const diskKind: fc.Arbitrary<Pick<VmiDisk, 'disk' | 'cdrom' | 'lun'>> = fc.oneof(
  fc.record({ disk: fc.record({ bus }, { requiredKeys: [] }) }),
  fc.record({ cdrom: fc.record({ bus: fc.constant('sata' as const), readonly: bool }, { requiredKeys: [] }) }),
  fc.constant({}),
);

const disk = fc.tuple(
  source,
  diskKind,
  fc.record(
    {
      cache: fc.constantFrom('none', 'writeback', 'writethrough'),
      io: fc.constantFrom('threads'),
      errorPolicy: fc.constantFrom('stop', 'ignore', 'report', 'enospace'),
      serial: fc.string({ minLength: 1, maxLength: 20, unit: fc.constantFrom(...Array.from('aZ9-_.')) }),
      dedicatedIOThread: bool,
      blockSize: fc.constantFrom({ custom: { logical: 512, physical: 4096 } }),
    },
    { requiredKeys: [] },
  ),
);

const iface: fc.Arbitrary<Omit<VmiInterface, 'name'>> = fc.record(
  {
    model: fc.constantFrom('virtio', 'e1000e', 'rtl8139'),
    macAddress: fc.constantFrom('02:00:00:00:00:07'),
    acpiIndex: fc.integer({ min: 1, max: 16 }),
    state: fc.constantFrom<'up' | 'down' | 'absent'>('up', 'down', 'absent'),
  },
  { requiredKeys: [] },
);

const cpu: fc.Arbitrary<NonNullable<VmiDomain['cpu']>> = fc.record(
  {
    sockets: fc.integer({ min: 1, max: 4 }),
    cores: fc.integer({ min: 1, max: 4 }),
    threads: fc.integer({ min: 1, max: 2 }),
    model: fc.constantFrom('host-model', 'host-passthrough', 'qemu64', 'Haswell'),
    features: fc.constantFrom([{ name: 'invtsc', policy: 'require' }], [{ name: 'mpx' }], [{ name: 'aes' }]),
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
    synictimer: fc.constantFrom({}, { direct: {} }),
    reset: state,
    vendorid: fc.constantFrom({ vendorid: 'Virtwire' }),
    frequencies: state,
    reenlightenment: state,
    tlbflush: state,
    ipi: state,
  },
  { requiredKeys: [] },
);

const devices = fc.record(
  {
    rng: fc.constant({}),
    watchdog: fc.constant({ name: 'w', i6300esb: {} }),
    sound: fc.constantFrom({ name: 's' }, { name: 's', model: 'ac97' }),
    inputs: fc.constantFrom<VmiInput[]>(
      [{ name: 't', type: 'tablet' }],
      [{ name: 't', type: 'tablet', bus: 'virtio' }],
    ),
    panicDevices: fc.constantFrom<{ model: string }[]>([{ model: 'isa' }], [{ model: 'hyperv' }]),
    clientPassthrough: fc.constant({}),
    downwardMetrics: fc.constant({}),
    video: fc.constantFrom({ type: 'virtio' }, { type: 'vga' }),
    blockMultiQueue: bool,
    networkInterfaceMultiqueue: bool,
    useVirtioTransitional: bool,
    disableHotplug: bool,
    logSerialConsole: bool,
    autoattachGraphicsDevice: bool,
    autoattachSerialConsole: bool,
    autoattachMemBalloon: bool,
    autoattachPodInterface: bool,
  },
  { requiredKeys: [] },
);

const domain: fc.Arbitrary<Omit<VmiDomain, 'devices'>> = fc.record(
  {
    cpu,
    memory: fc.constantFrom(
      { guest: '64Mi' },
      { guest: '1Gi' },
      { guest: '3Gi' },
      { guest: '1.5Gi' },
      { guest: '100M' },
    ),
    firmware: fc.constantFrom(
      { serial: 'e4686d2c' },
      { bootloader: { bios: { useSerial: true } } },
      { kernelBoot: { kernelArgs: 'console=ttyS0', container: { kernelPath: '/boot/vmlinuz' } } },
    ),
    clock: fc.constantFrom(
      { utc: {}, timer: { hpet: { present: false }, rtc: { tickPolicy: 'catchup' }, pit: { tickPolicy: 'delay' } } },
      { utc: { offsetSeconds: -120 } },
      { timezone: 'Europe/Berlin', timer: { kvm: {} } },
    ),
    features: fc.record({ apic: state, acpi: state, kvm: fc.record({ hidden: bool }), hyperv }, { requiredKeys: [] }),
    chassis: fc.record({ manufacturer: text, version: text, serial: text, asset: text, sku: text }),
    ioThreadsPolicy: fc.constantFrom<'shared' | 'auto'>('shared', 'auto'),
    rebootPolicy: fc.constantFrom<'Terminate' | 'Reboot'>('Terminate', 'Reboot'),
  },
  { requiredKeys: ['memory'] },
);

const parts = fc.record({
  domain,
  devices,
  disks: fc.array(disk, { maxLength: 6 }),
  interfaces: fc.array(iface, { maxLength: 3 }),
  isPaused: bool,
  blockVolumes: fc.subarray(['d0', 'd1', 'd2', 'd3']),
  annotations: optional(
    fc.constantFrom<Record<string, string>>(
      { 'kubevirt.io/disablePCIHole64': 'true' },
      { 'kubevirt.io/free-page-reporting-disabled': 'true' },
      { 'kubevirt.io/placePCIDevicesOnRootComplex': 'true' },
    ),
  ),
});

/**
 * VMIs that the API of a cluster of an architecture would take, over the families that need no special hardware,
 * defaults applied.
 */
export function arbitraryConversionOn(architecture: Architecture): fc.Arbitrary<ArbitraryConversion> {
  return parts.map((given) => {
    const vmi = applyVmiDefaults(assemble(given, architecture), clusterDefaults(architecture), UUID);
    const attached = (vmi.spec.domain.devices.interfaces ?? []).map(({ name }) => [name, 'tap'] as const);
    const circumstances = circumstancesFromJson(
      vmi,
      { hostArchitecture: architecture, hypervisorDeviceAvailable: false, blockVolumes: given.blockVolumes },
      { MemBalloonStatsPeriod: 10, interfaceDomainAttachment: Object.fromEntries(attached) },
    );
    return { vmi, circumstances };
  });
}

/** The same on amd64. */
export const arbitraryConversion = arbitraryConversionOn('amd64');

interface Parts {
  readonly domain: Omit<VmiDomain, 'devices'>;
  readonly devices: VmiDomain['devices'];
  readonly disks: readonly (readonly [
    Omit<Volume, 'name'>,
    Pick<VmiDisk, 'disk' | 'cdrom' | 'lun'>,
    Partial<VmiDisk>,
  ])[];
  readonly interfaces: readonly Omit<VmiInterface, 'name'>[];
  readonly isPaused: boolean;
  readonly annotations: Record<string, string> | undefined;
}

/** arm64 has no watchdog, s390x one of its own. */
function watchdogOf(architecture: Architecture): VmiDomain['devices']['watchdog'] {
  if (architecture === 'arm64') return undefined;
  return architecture === 's390x' ? { name: 'w', diag288: {} } : { name: 'w', i6300esb: {} };
}

function assemble(parts: Parts, architecture: Architecture): Vmi {
  const disks = parts.disks.map(([, kind, options], index) => ({ ...options, ...kind, name: `d${String(index)}` }));
  const volumes = parts.disks.map(([volume], index) => ({ ...volume, name: `d${String(index)}` }));
  const interfaces = parts.interfaces.map((options, index) => ({
    ...options,
    ...(index === 0 ? { masquerade: {} } : { bridge: {} }),
    name: `n${String(index)}`,
  }));
  // The BIOS needs the port that it is to write to.
  const firmware = parts.domain.firmware;
  const hasLostSerial = firmware?.bootloader?.bios !== undefined && parts.devices.autoattachSerialConsole === false;
  const { watchdog: wanted, ...others } = parts.devices;
  const watchdog = wanted === undefined ? undefined : watchdogOf(architecture);
  const devices = {
    ...others,
    ...(watchdog === undefined ? {} : { watchdog }),
    ...(hasLostSerial ? { autoattachSerialConsole: true } : {}),
  };
  return structuredClone({
    metadata: {
      name: 'vm',
      namespace: 'ns',
      uid: '5e1f0a00-0000-4000-8000-000000000001',
      ...(parts.annotations === undefined ? {} : { annotations: parts.annotations }),
    },
    spec: {
      domain: { ...parts.domain, devices: { ...devices, disks, interfaces } },
      volumes,
      networks: interfaces.map(({ name }, index) =>
        index === 0 ? { name, pod: {} } : { name, multus: { networkName: name } },
      ),
      ...(parts.isPaused ? { startStrategy: 'Paused' as const } : {}),
    },
  });
}
