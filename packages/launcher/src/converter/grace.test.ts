import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { type DomainSpec, renderDomainXml } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { type ConversionChange, convertWith } from '../testing/conversion.ts';
import { collectGraceFacts } from './collect-grace-facts.ts';
import type { GraceDeviceFacts, GraceHostFacts } from './grace-facts.ts';

const GPUS = ['0008:01:00.0', '0009:01:00.0'];
const TIB = 1n << 40n;
const CELLS = [0, 1].map((id) => ({ id, cpus: [0, 1].map((cpu) => ({ id: id * 2 + cpu, siblings: [id * 2 + cpu] })) }));
/** Nodes 0 and 1 have processors, 2 to 17 are the initiators of two GPUs. */
const NODES = Array.from({ length: 18 }, (_none, node) => node);

function gpu(change: Partial<GraceDeviceFacts> = {}): GraceDeviceFacts {
  return {
    identity: { value: { vendor: '0x10de', device: '0x2342' } },
    numaNode: { value: 0 },
    barBytes: { value: 128n << 30n },
    initiatorNodes: { value: [] },
    ...change,
  };
}

function host(change: Partial<GraceHostFacts> = {}): GraceHostFacts {
  const distanceOf = (node: number, other: number): number => (node === other ? 10 : node > 1 && other > 1 ? 10 : 40);
  return {
    hasSmmuV3: { value: true },
    devices: new Map(GPUS.map((address, node) => [address, gpu({ numaNode: { value: node } })])),
    initiatorNodes: { value: NODES.slice(2) },
    distances: new Map(
      NODES.map((node) => [node, { value: new Map(NODES.map((other) => [other, distanceOf(node, other)])) }]),
    ),
    ...change,
  };
}

/** An arm64 VM with two GPUs on two host nodes, which lacks nothing. */
function grace(facts: Partial<GraceHostFacts> = {}, change: ConversionChange = {}): ConversionChange {
  return {
    domain: {
      cpu: { cores: 4, dedicatedCpuPlacement: true, numa: { guestMappingPassthrough: {} } },
      memory: { guest: '4Gi', hugepages: { pageSize: '2Mi' } },
      devices: {
        gpus: [
          { name: 'a', deviceName: 'nvidia.com/g' },
          { name: 'b', deviceName: 'nvidia.com/g' },
        ],
        hostDevices: [{ name: 'nic', deviceName: 'v/nic' }],
      },
      ...change.domain,
    },
    spec: { architecture: 'arm64' },
    context: {
      hostArchitecture: 'arm64',
      podCPUSet: [0, 1, 2, 3],
      env: { PCI_RESOURCE_NVIDIA_COM_G: GPUS.join(','), PCI_RESOURCE_V_NIC: '0000:05:00.1' },
      ...change.context,
    },
    options: {
      topology: { numaCells: CELLS },
      clusterConfig: { PCINUMAAwareTopologyEnabled: true, GraceIOVirtualizationEnabled: true },
      GraceHostDeviceAliases: ['gpu-a', 'gpu-b'],
      ...change.options,
    },
    circumstances: {
      hasIommuFd: true,
      hostPciDevices: new Map([['0000:05:00.1', { numaNode: 1 }]]),
      graceHost: host(facts),
      ...change.circumstances,
    },
    ...(change.annotations === undefined ? {} : { annotations: change.annotations }),
  };
}

describe('a VM with Grace GPUs', () => {
  let spec: DomainSpec;
  beforeEach(() => void (spec = convertWith(grace())));

  test('gives each GPU an expander bus and an SMMU of its own, and others of the cell a shared one', () => {
    const controllers = (spec.Devices.Controllers ?? []).filter(({ Type }) => Type === 'pci');
    expect(controllers.map(({ Model, Index, Target, Address }) => [Model, Index, Target, Address?.Bus])).toEqual([
      ['pcie-root', '0', undefined, undefined],
      ['pcie-expander-bus', '1', { BusNr: 254, NUMANode: 0 }, undefined],
      ['pcie-root-port', '2', undefined, '1'],
      ['pcie-expander-bus', '3', { BusNr: 252, NUMANode: 1 }, undefined],
      ['pcie-root-port', '4', undefined, '3'],
      ['pcie-expander-bus', '5', { BusNr: 250, NUMANode: 1 }, undefined],
      ['pcie-root-port', '6', undefined, '5'],
    ]);
    expect(spec.Devices.IOMMU).toEqual(
      ['1', '3'].map((bus) => ({
        Model: 'smmuv3',
        Driver: { PCIBus: bus, Accel: 'on', ATS: 'on', RIL: 'off', SSIDSize: '20', OAS: '48' },
      })),
    );
    expect(spec.Devices.HostDevices?.map(({ Alias, Address }) => [Alias?.Name, Address?.Bus])).toEqual([
      ['hostdevice-nic', '6'],
      ['gpu-a', '2'],
      ['gpu-b', '4'],
    ]);
  });

  test('gives each GPU eight cells without memory, with the distances of the host', () => {
    const cells = spec.CPU.NUMA?.Cells ?? [];
    expect(cells.map(({ ID, Memory }) => [ID, Memory === 0])).toEqual(NODES.map((node) => [String(node), node > 1]));
    expect(spec.Devices.HostDevices?.slice(1).map(({ ACPI, Driver }) => [ACPI?.NodeSet, Driver?.Iommufd])).toEqual([
      ['2-9', 'yes'],
      ['10-17', 'yes'],
    ]);
    const distances = cells[3]?.Distances?.Siblings?.map(({ Value }) => Value);
    expect(distances?.slice(0, 5), 'near ones are no farther than 11, and none but itself is at 10').toEqual([
      40, 40, 11, 10, 11,
    ]);
    expect(distances).toHaveLength(18);
  });

  test.each<[string, bigint, number]>([
    ['with the least of 512 GiB each: 2 TiB', 1n, 2 * 2 ** 30],
    ['with BARs of 1 TiB each: 4 TiB', TIB, 4 * 2 ** 30],
  ])('sizes the PCI hole %s', (_title, bytes, kib) => {
    const devices = new Map(
      GPUS.map((address, node) => [address, gpu({ numaNode: { value: node }, barBytes: { value: bytes } })]),
    );
    const { Devices } = convertWith(grace({ devices }));
    expect(Devices.Controllers?.find(({ Model }) => Model === 'pcie-root')?.PCIHole64).toEqual({
      Value: kib,
      Unit: 'KiB',
    });
  });

  test('is written as libvirt reads it', () => {
    const xml = renderDomainXml(spec);
    expect(xml).toContain('<cell id="2" memory="0" unit="KiB"><distances><sibling id="0" value="40"></sibling>');
    expect(xml).toContain('<driver iommufd="yes"></driver><acpi nodeset="2-9"></acpi>');
    expect(xml).toContain(
      '<iommu model="smmuv3"><driver pciBus="1" accel="on" ats="on" ril="off" ssidSize="20" oas="48"></driver></iommu>',
    );
    expect(xml).toContain('<iommufd enabled="yes" fdgroup="iommu"></iommufd>');
  });

  test('takes the initiator nodes that name the GPU, where the kernel tells', () => {
    const swapped = new Map([
      [GPUS[0] ?? '', gpu({ initiatorNodes: { value: NODES.slice(10).reverse() } })],
      [GPUS[1] ?? '', gpu({ numaNode: { value: 1 }, initiatorNodes: { value: NODES.slice(2, 10) } })],
    ]);
    const distances = new Map(
      NODES.map((node) => [node, { value: new Map(NODES.map((other) => [other, 100 + other])) }]),
    );
    const { CPU } = convertWith(grace({ devices: swapped, distances }));
    expect(CPU.NUMA?.Cells?.[0]?.Distances?.Siblings?.[2]).toEqual({ ID: '2', Value: 110 });
  });
});

const withGpu = (change: Partial<GraceDeviceFacts>): Partial<GraceHostFacts> => ({
  devices: new Map([
    [GPUS[0] ?? '', gpu(change)],
    [GPUS[1] ?? '', gpu({ numaNode: { value: 1 } })],
  ]),
});
const gates = (change: Record<string, boolean>): ConversionChange => ({
  options: {
    clusterConfig: { PCINUMAAwareTopologyEnabled: true, GraceIOVirtualizationEnabled: true, ...change },
  },
});
const AT = '"gpu-a" at 0008:01:00.0';

test.each<[message: string, facts: Partial<GraceHostFacts>, change?: ConversionChange]>([
  [
    'GraceIOVirtualization conversion requested without the GraceIOVirtualization feature gate',
    {},
    gates({ GraceIOVirtualizationEnabled: false }),
  ],
  [
    'GraceIOVirtualization requires PCINUMAAwareTopology for PCI placement',
    {},
    gates({ PCINUMAAwareTopologyEnabled: false }),
  ],
  [
    'GraceIOVirtualization requires an IOMMUFD file descriptor in virt-launcher',
    {},
    { circumstances: { hasIommuFd: false } },
  ],
  ['GraceIOVirtualization requires dedicated CPU placement', {}, { domain: { cpu: { cores: 4 } } }],
  [
    'GraceIOVirtualization requires PCIe placement support on architecture s390x',
    {},
    { context: { hostArchitecture: 's390x', ovmfPath: '/firmware' } },
  ],
  [
    'GraceIOVirtualization requires the 64-bit PCI hole',
    {},
    { annotations: { 'kubevirt.io/disablePCIHole64': 'true' } },
  ],
  [
    'GraceIOVirtualization cannot be combined with PCI root-complex placement',
    {},
    { annotations: { 'kubevirt.io/placePCIDevicesOnRootComplex': 'true' } },
  ],
  ['GraceIOVirtualization requires SMMUv3 on the host', { hasSmmuV3: { value: false } }],
  [
    'failed to verify SMMUv3 availability for GraceIOVirtualization: open /sys/class/iommu: no such file or directory',
    { hasSmmuV3: { failure: 'open /sys/class/iommu: no such file or directory' } },
  ],
  [
    'GraceIOVirtualization expected hostdev aliases gpu-y, gpu-z, but no matching host devices were assigned',
    {},
    { options: { ...gates({}).options, GraceHostDeviceAliases: ['gpu-z', '', 'gpu-a', 'gpu-y'] } },
  ],
  [
    `GraceIOVirtualization expected hostdev ${AT} to be a supported NVIDIA Grace GPU, got vendor 10DE device 20B0`,
    withGpu({ identity: { value: { vendor: '0x10de', device: '0x20b0' } } }),
  ],
  [
    `failed to read PCI identity for Grace hostdev ${AT}: open /x: no such file or directory`,
    withGpu({ identity: { failure: 'open /x: no such file or directory' } }),
  ],
  [
    `failed to read NUMA node for Grace hostdev ${AT}: invalid NUMA node -1`,
    withGpu({ numaNode: { failure: 'invalid NUMA node -1' } }),
  ],
  [
    'Grace hostdev "gpu-a" is on host NUMA node 5, but no guest NUMA cell maps to that host node',
    withGpu({ numaNode: { value: 5 } }),
  ],
  [
    `Grace hostdev ${AT} has no 64-bit prefetchable PCI BARs for pcihole64 sizing`,
    withGpu({ barBytes: { value: 0n } }),
  ],
  [`failed to calculate pcihole64 for Grace hostdev ${AT}: gone`, withGpu({ barBytes: { failure: 'gone' } })],
  [
    `Grace pcihole64 size overflows while adding hostdev "gpu-b" at 0009:01:00.0`,
    withGpu({ barBytes: { value: 2n ** 64n - 1n } }),
  ],
  ['invalid Grace pcihole64 size 34359738368 KiB', withGpu({ barBytes: { value: 16n * TIB } })],
  [
    'GraceIOVirtualization requires 16 host Generic Initiator NUMA nodes for 2 Grace GPU(s), found 15',
    { initiatorNodes: { value: NODES.slice(3) } },
  ],
  ['failed to discover Grace Generic Initiator NUMA nodes: gone', { initiatorNodes: { failure: 'gone' } }],
  [
    `GraceIOVirtualization requires exactly 8 host Generic Initiator NUMA nodes for hostdev ${AT}, found 2`,
    withGpu({ initiatorNodes: { value: [2, 3] } }),
  ],
  [
    'Grace Generic Initiator NUMA nodes were correlated for some but not all Grace hostdevs; missing correlations for ' +
      'gpu-b at 0009:01:00.0',
    withGpu({ initiatorNodes: { value: NODES.slice(2, 10) } }),
  ],
  [
    'Grace Generic Initiator NUMA node 2 is associated with multiple Grace hostdevs (gpu-a and gpu-b)',
    {
      devices: new Map(
        GPUS.map((address, node) => [
          address,
          gpu({ numaNode: { value: node }, initiatorNodes: { value: NODES.slice(2, 10) } }),
        ]),
      ),
    },
  ],
  ['failed to read host NUMA distances for node 0: gone', { distances: new Map([[0, { failure: 'gone' }]]) }],
  ['missing host NUMA distance from node 0 to node 1', { distances: new Map([[0, { value: new Map([[0, 10]]) }]]) }],
  [
    'GraceIOVirtualization requires guest NUMA cells',
    {},
    { domain: { cpu: { cores: 4, dedicatedCpuPlacement: true }, memory: { guest: '4Gi' } } },
  ],
  [
    'GraceIOVirtualization requires NUMATune memnodes to map guest NUMA cells to host NUMA nodes',
    {},
    { domain: { cpu: { cores: 4, dedicatedCpuPlacement: true } } },
  ],
])('refused: %s', (message, facts, change = {}) => {
  const full = grace(facts, {
    ...change,
    options: { ...grace().options, ...change.options },
  });
  expect(() => convertWith(full)).toThrow(new LauncherError('ConvertFailed', message));
});

describe('what sysfs says of Grace GPUs', () => {
  let root: string;
  beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'virtwire-grace-'))));
  afterEach(() => rmSync(root, { recursive: true }));

  function write(path: string, text: string): void {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  function addDevice(address: string): void {
    const dir = `devices/pci/${address}`;
    write(`${dir}/vendor`, '0x10de\n');
    write(`${dir}/device`, '0x2342\n');
    write(`${dir}/numa_node`, '1\n');
    write(
      `${dir}/resource`,
      '0x0000000010000000 0x0000000010ffffff 0x0000000000040200\n' + // not prefetchable
        '0x0000042000000000 0x0000043fffffffff 0x000000000014220c\n' +
        '0x0000000000000000 0x0000000000000000 0x0000000000000000\n' +
        '0x0000044000000000 0x0000044001ffffff 0x000000000014220c\n',
    );
    mkdirSync(join(root, 'bus/pci/devices'), { recursive: true });
    symlinkSync(join(root, dir), join(root, 'bus/pci/devices', address));
  }

  test('identity, node, BARs and initiators of a device, and the distances of the host', async () => {
    const address = '0009:01:00.0';
    addDevice(address);
    write('devices/system/node/online', '0-1,4\n');
    write('devices/system/node/has_generic_initiator', '4\n');
    for (const [node, line] of [
      [0, '10 20 30'],
      [1, '20 10 40'],
      [4, '30 40 10'],
    ] as const) {
      write(`devices/system/node/node${String(node)}/distance`, `${line}\n`);
    }
    mkdirSync(join(root, 'devices/system/node/node4/access0'), { recursive: true });
    symlinkSync(join(root, 'devices/pci', address), join(root, 'devices/system/node/node4/access0/target'));
    mkdirSync(join(root, 'class/iommu'), { recursive: true });
    symlinkSync('../../devices/platform/arm-smmu-v3.1', join(root, 'class/iommu/smmu3.0x1'));
    const facts = await collectGraceFacts([address], { sysfs: root });
    expect(facts.hasSmmuV3).toEqual({ value: true });
    expect(facts.initiatorNodes).toEqual({ value: [4] });
    expect(facts.devices.get(address)).toEqual({
      identity: { value: { vendor: '0x10de', device: '0x2342' } },
      numaNode: { value: 1 },
      barBytes: { value: 0x20_0200_0000n },
      initiatorNodes: { value: [4] },
    });
    expect(facts.distances.get(1)).toEqual({
      value: new Map([
        [0, 20],
        [1, 10],
        [4, 40],
      ]),
    });
  });

  test('a kernel that does not list initiators has them as nodes without memory and processors', async () => {
    write('devices/system/node/online', '0-2\n');
    for (const [node, memory, cpus] of [
      [0, '1024', '0-3'],
      [1, '0', ''],
      [2, '0', '4'],
    ] as const) {
      write(`devices/system/node/node${String(node)}/meminfo`, `Node ${String(node)} MemTotal:       ${memory} kB\n`);
      write(`devices/system/node/node${String(node)}/cpulist`, `${cpus}\n`);
    }
    expect((await collectGraceFacts([], { sysfs: root })).initiatorNodes).toEqual({ value: [1] });
  });

  test('what is not there is told in the words of the model', async () => {
    const facts = await collectGraceFacts(['0009:01:00.0'], { sysfs: root });
    expect(facts.hasSmmuV3).toEqual({ failure: `open ${root}/class/iommu: no such file or directory` });
    const device = facts.devices.get('0009:01:00.0');
    expect(device?.identity).toEqual({
      failure: `open ${root}/bus/pci/devices/0009:01:00.0/vendor: no such file or directory`,
    });
    expect(facts.distances.size).toBe(0);
  });
});
