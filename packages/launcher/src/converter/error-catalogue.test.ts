import { parseVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';

import { LauncherError } from '../errors.ts';
import { type ConversionChange, convertWith } from '../testing/conversion.ts';
import { circumstancesFromJson } from './circumstances-json.ts';
import { convertVmi } from './convert.ts';
import { resolveConverterContext } from './resolve-context.ts';

/** Two host cells of four CPUs without siblings. */
const CELLS = [0, 1].map((id) => ({
  id,
  cpus: [0, 1, 2, 3].map((cpu) => ({ id: id * 4 + cpu, siblings: [id * 4 + cpu] })),
}));
const on = (...podCPUSet: number[]): ConversionChange => ({
  context: { podCPUSet },
  options: { topology: { numaCells: CELLS } },
});
const DEDICATED = { dedicatedCpuPlacement: true };
const PASSTHROUGH = { ...DEDICATED, numa: { guestMappingPassthrough: {} } };
const DRIVE = { name: 'd', cdrom: { bus: 'sata' as const }, blockSize: { matchVolume: {} } };
const VOLUME = { name: 'd', persistentVolumeClaim: { claimName: 'c' } };
const SYSFS_DISK = '/var/run/kubevirt-private/vmi-disks/d/disk.img';
const GPUS = ['a', 'b'].map((name) => ({ name, deviceName: 'v/g' }));
const VGPU: ConversionChange = {
  context: { env: { MDEV_PCI_RESOURCE_V_G: 'u1,u2' } },
  options: { clusterConfig: { VGPULiveMigrationEnabled: true } },
  circumstances: { isMigrationTarget: true },
};

/** PCI devices on the first host node, in a guest that sees it. */
function devicesOnNode(addresses: readonly string[], change: ConversionChange = {}): ConversionChange {
  return {
    domain: {
      cpu: { cores: 1, ...PASSTHROUGH },
      memory: { guest: '1Gi', hugepages: { pageSize: '2Mi' } },
      devices: { hostDevices: addresses.map((_address, index) => ({ name: `k${String(index)}`, deviceName: 'v/k' })) },
      ...change.domain,
    },
    ...(change.spec && { spec: change.spec }),
    ...(change.status && { status: change.status }),
    context: { podCPUSet: [0], env: { PCI_RESOURCE_V_K: addresses.join(',') }, ...change.context },
    options: { topology: { numaCells: CELLS }, clusterConfig: { PCINUMAAwareTopologyEnabled: true } },
    circumstances: { hostPciDevices: new Map(addresses.map((address) => [address, { numaNode: 0 }])) },
  };
}

const sriovAt = (pciAddress: string): Pick<ConversionChange, 'domain' | 'spec' | 'status' | 'context'> => ({
  domain: { devices: { interfaces: [{ name: 's', sriov: {}, pciAddress }] } },
  spec: { networks: [{ name: 's', multus: { networkName: 's' } }] },
  status: { interfaces: [{ name: 's', infoSource: 'multus-status' }] },
  context: {
    podCPUSet: [0],
    networkInfo: { interfaces: [{ network: 's', deviceInfo: { pci: { 'pci-address': '0000:01:00.0' } } }] },
  },
});
const STRICT = 'failed to process strict PCIe NUMA-aware topology: ';
/** More devices than there are bus numbers. */
const MANY = Array.from({ length: 260 }, (_none, index) => {
  const hex = (value: number): string => value.toString(16).padStart(2, '0');
  return `0000:${hex(1 + (index >> 5))}:${hex(index & 31)}.0`;
});

test.each<[message: string, change: ConversionChange]>([
  [
    'could not fit 1 core(s) without crossing numa cell boundaries for individual cores',
    { domain: { cpu: { cores: 1, threads: 2, ...PASSTHROUGH } }, ...on(0, 4) },
  ],
  [
    'not enough exclusive threads provided, could not fit 2 core(s)',
    { domain: { cpu: { cores: 4, ...DEDICATED } }, ...on(0, 4) },
  ],
  [
    'no CPU allocated for the iothread: no remaining unassigned threads',
    {
      domain: {
        cpu: { cores: 2, ...DEDICATED },
        ioThreadsPolicy: 'supplementalPool',
        ioThreads: { supplementalPoolThreadCount: 2 },
      },
      ...on(0, 1, 2),
    },
  ],
  [
    'no second CPU allocated for the emulation thread: no remaining unassigned threads',
    {
      domain: { cpu: { cores: 2, isolateEmulatorThread: true, ...DEDICATED } },
      annotations: { 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': '' },
      ...on(0, 1, 2),
    },
  ],
  [
    'not enough memory requested to allocate at least one hugepage per numa node: {2097152 b} < 4398046511104',
    {
      domain: { cpu: { cores: 2, ...PASSTHROUGH }, memory: { guest: '2Mi', hugepages: { pageSize: '2Mi' } } },
      ...on(0, 4),
    },
  ],
  [
    'failed to configure disk with block size detection enabled: disk is neither a block device nor a file',
    { domain: { devices: { disks: [DRIVE] } } },
  ],
  [
    `failed to configure disk with block size detection enabled: block sizes returned by device ${SYSFS_DISK} are 0`,
    {
      domain: { devices: { disks: [DRIVE] } },
      spec: { volumes: [VOLUME] },
      circumstances: { blockSizes: new Map([[SYSFS_DISK, { logical: 0, physical: 0, discardGranularity: 0 }]]) },
    },
  ],
  [
    'custom block size (logical=512, physical=8192) exceeds the maximum supported size of 4096 for architecture s390x',
    {
      domain: { devices: { disks: [{ ...DRIVE, blockSize: { custom: { logical: 512, physical: 8192 } } }] } },
      spec: { volumes: [VOLUME] },
      context: { hostArchitecture: 's390x' },
    },
  ],
  [
    'vGPU live migration currently only supports a single vGPU, found 2 for vmi vm',
    { domain: { devices: { gpus: GPUS } }, ...VGPU },
  ],
  [
    'vGPU live migration requires LibvirtHooksServerAndClient feature gate for vmi vm',
    { domain: { devices: { gpus: GPUS.slice(0, 1) } }, ...VGPU },
  ],
  [
    'failed to create hostdevice for s: failed to interpret the guest PCI address: failed to parse pci address x',
    sriovAt('x'),
  ],
  [
    `${STRICT}strict PCI NUMA-aware placement failed: device 0000:01:00.0 already has a guest PCI address, skipping ` +
      'pcie-expander-bus assignment',
    devicesOnNode([], {
      ...sriovAt('0000:05:00.0'),
      domain: { ...devicesOnNode([]).domain, ...sriovAt('0000:05:00.0').domain },
    }),
  ],
  [
    `${STRICT}failed to create PCIe topology with NUMA alignment: failed to place device 0000:08:1d.0: insufficient ` +
      'bus numbers for NUMA-aligned PCIe topology: current controller index 254, last assigned expander bus number 255',
    devicesOnNode(MANY),
  ],
])('%s', (message, change) => {
  expect(() => convertWith(change)).toThrow(new LauncherError('ConvertFailed', message));
});

test.each([
  ['amd64', {}],
  ['amd64', { diag288: {} }],
  ['s390x', { i6300esb: {} }],
])(
  'a watchdog on %s of the kinds %j cannot be mapped, where admission did not complete it',
  (hostArchitecture, kinds) => {
    const vmi = parseVmiJson(JSON.stringify({ spec: { domain: { devices: { watchdog: { name: 'w', ...kinds } } } } }));
    const circumstances = circumstancesFromJson(vmi, { hostArchitecture }, {});
    expect(() => convertVmi(vmi, resolveConverterContext(vmi, circumstances))).toThrow(
      new LauncherError('ConvertFailed', "watchdog w can't be mapped, no watchdog type specified"),
    );
  },
);

test.each<[title: string, message: string, change: ConversionChange]>([
  [
    'a missing network before a foreign architecture that nobody knows',
    'failed to find network n',
    {
      spec: { architecture: 'riscv64' },
      domain: { devices: { interfaces: [{ name: 'n', bridge: {} }] } },
      context: { allowCrossArchEmulation: true },
    },
  ],
  [
    'what SNP lacks of a VM that asks for SEV too',
    'EFI OVMF roms missing for booting in EFI mode with SecureBoot=true, SEV/SEV-ES=false, SEV-SNP=true, TDX=false',
    { domain: { launchSecurity: { sev: {}, snp: {} }, firmware: { bootloader: { efi: {} } } } },
  ],
  [
    'EFI on s390x, whose launchers know of no directory of firmware',
    'EFI OVMF roms missing for booting in EFI mode with SecureBoot=false, SEV/SEV-ES=false, SEV-SNP=false, TDX=false',
    {
      domain: { firmware: { bootloader: { efi: { secureBoot: false } } } },
      context: { hostArchitecture: 's390x' },
    },
  ],
])('%s is told', (_title, message, change) => {
  expect(() => convertWith(change)).toThrow(new LauncherError('ConvertFailed', message));
});

test('a device that finds no bus number is left to libvirt, where nothing strict was asked for', () => {
  const { domain, ...rest } = devicesOnNode(MANY);
  const { Devices } = convertWith({ ...rest, domain: { ...domain, cpu: { cores: 1, ...DEDICATED } } });
  expect(Devices.HostDevices?.filter(({ Address }) => Address !== undefined)).toEqual([]);
});

test('without options, as from a handler of v1.0, a network card has no type that libvirt would take', () => {
  const { Devices } = convertWith({
    domain: { devices: { interfaces: [{ name: 'default', masquerade: {} }] } },
    spec: { networks: [{ name: 'default', pod: {} }] },
    circumstances: { options: undefined },
  });
  expect(Devices.Interfaces).toEqual([
    { Type: '', Model: { Type: 'virtio-non-transitional' }, Alias: { Name: 'default', UserDefined: true } },
  ]);
});

test.each<[attachment: string | undefined, isThere: boolean]>([
  ['tap', true],
  ['managedTap', false],
  ['vhostuser', false],
  [undefined, false],
])('a network card of a plugin that attaches by %s is in the domain: %s', (attachment, isThere) => {
  const { Devices } = convertWith({
    domain: { devices: { interfaces: [{ name: 'n', binding: { name: 'p' }, state: 'down', acpiIndex: 3 }] } },
    spec: { networks: [{ name: 'n', pod: {} }] },
    options: { interfaceDomainAttachment: attachment === undefined ? {} : { n: attachment } },
  });
  expect(Devices.Interfaces !== undefined).toBe(isThere);
  if (!isThere) return;
  expect(Devices.Interfaces?.[0]).toMatchObject({
    Type: 'ethernet',
    LinkState: { State: 'down' },
    ACPI: { Index: 3 },
    Rom: { Enabled: 'no' },
  });
});

test.each<[title: string, change: ConversionChange, rom: unknown]>([
  ['nobody boots from it', {}, { Enabled: 'no' }],
  ['its guest has no boot ROMs', { context: { hostArchitecture: 's390x' } }, undefined],
])('a card keeps its boot ROM or not, since %s', (_title, change, rom) => {
  const { Devices } = convertWith({ ...change, options: { interfaceDomainAttachment: { default: 'tap' } } });
  expect(Devices.Interfaces?.[0]?.Rom).toEqual(rom);
});

test('an IOMMU descriptor is named for the domain, without one nothing is', () => {
  expect(convertWith({ circumstances: { hasIommuFd: true } }).IOMMUFD).toEqual({ Enabled: 'yes', FDGroup: 'iommu' });
  expect(convertWith({})).not.toHaveProperty('IOMMUFD');
});
