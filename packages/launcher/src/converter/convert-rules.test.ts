import { describe, expect, test } from 'vitest';

import { LauncherError } from '../errors.ts';
import { type ConversionChange, convertWith, vmiWith } from '../testing/conversion.ts';
import { completeForLibvirt } from './complete-for-libvirt.ts';
import { countHotplugPorts } from './ports.ts';

const CELLS = [0, 1].map((id) => ({
  id,
  cpus: [0, 1, 2, 3].map((cpu) => ({ id: id * 4 + cpu, siblings: [id * 4 + cpu] })),
}));
const PINNED = { context: { podCPUSet: [0, 1, 4, 5] }, options: { topology: { numaCells: CELLS } } };

function numaDomain(pageSize: string): ConversionChange['domain'] & object {
  return {
    cpu: { cores: 4, dedicatedCpuPlacement: true, numa: { guestMappingPassthrough: {} } },
    memory: { guest: '1Gi', hugepages: { pageSize } },
  };
}

describe('refusals, to the letter', () => {
  const cases: readonly (readonly [string, ConversionChange, string])[] = [
    [
      'no hypervisor, Hyper-V wanted',
      { context: { hypervisorName: 'hyperv-direct', hypervisorDeviceAvailable: false, allowEmulation: false } },
      'MSHV not present',
    ],
    [
      'emulator of a foreign architecture missing',
      {
        spec: { architecture: 's390x' },
        context: { allowCrossArchEmulation: true },
        circumstances: { emulatorPaths: new Set<string>() },
      },
      'required emulator binary not found: /usr/bin/qemu-system-s390x',
    ],
    [
      'foreign architecture that nobody knows',
      { spec: { architecture: 'riscv64' }, context: { allowCrossArchEmulation: true } },
      'unsupported guest architecture for cross-architecture emulation: riscv64',
    ],
    [
      'ACPI tables without a name',
      { domain: { firmware: { acpi: {} } } },
      'No ACPI tables were set. Expecting at least one.',
    ],
    [
      'ACPI table of a volume that is not there',
      { domain: { firmware: { acpi: { msdmNameRef: 'x' } } } },
      "Firmware's volume for msdm was not found",
    ],
    [
      'SEV with Secure Boot',
      { domain: { firmware: { bootloader: { efi: {} } }, launchSecurity: { sev: {} } } },
      'EFI OVMF roms missing for booting in EFI mode with SecureBoot=true, SEV/SEV-ES=true, SEV-SNP=false, TDX=false',
    ],
    [
      'input on an unknown bus',
      { domain: { devices: { inputs: [{ name: 'i', type: 'tablet', bus: 'ps2' }] } } },
      'input contains unsupported bus ps2',
    ],
    [
      'input of an unknown type',
      { domain: { devices: { inputs: [{ name: 'i', type: 'mouse' }] } } },
      'input contains unsupported type mouse',
    ],
    [
      'bad guest address of an interface',
      {
        domain: { devices: { interfaces: [{ name: 'n', bridge: {}, pciAddress: 'x' }] } },
        spec: { networks: [{ name: 'n', pod: {} }] },
      },
      'failed to configure interface n: failed to parse pci address x',
    ],
    [
      'USB address without a device',
      {
        domain: { devices: { hostDevices: [{ name: 'k', deviceName: 'a.b/usb' }] } },
        context: { env: { USB_RESOURCE_A_B_USB: '2' } },
      },
      'failed to create hostdevice for k: Bad value: 2',
    ],
    [
      'bad PCI address of a host device',
      {
        domain: { devices: { hostDevices: [{ name: 'k', deviceName: 'a.b/nic' }] } },
        context: { env: { PCI_RESOURCE_A_B_NIC: 'zz' } },
      },
      'failed to create generic host-devices: failed to create hostdevice for k: failed to create PCI device for k: ' +
        'failed to parse pci address zz',
    ],
    [
      'GPU without an address',
      { domain: { devices: { gpus: [{ name: 'g', deviceName: 'a.b/gpu', tag: 't' }] } } },
      'failed to create GPU host-devices: the number of device plugin GPU/s do not match the number of devices:\n' +
        'GPU: [{g a.b/gpu <nil> <nil> t}]\nDevice: []',
    ],
    [
      'SR-IOV network without an address',
      {
        domain: { devices: { interfaces: [{ name: 's', sriov: {} }] } },
        spec: { networks: [{ name: 's', multus: { networkName: 's' } }] },
        status: { interfaces: [{ name: 's', infoSource: 'domain, multus-status' }] },
        context: {
          networkInfo: { interfaces: [{ network: 'o', deviceInfo: { pci: { 'pci-address': '0000:01:00.0' } } }] },
        },
      },
      'failed to create hostdevice for s: PCI-Address for SR-IOV network "s" not found',
    ],
    [
      'no CPU for the emulator',
      { domain: { cpu: { cores: 4, dedicatedCpuPlacement: true, isolateEmulatorThread: true } }, ...PINNED },
      'no CPU allocated for the emulation thread: no remaining unassigned threads',
    ],
    [
      'NUMA passthrough without huge pages',
      {
        domain: { cpu: { cores: 2, dedicatedCpuPlacement: true, numa: { guestMappingPassthrough: {} } } },
        ...PINNED,
      },
      'passing through a numa topology is restricted to VMIs with hugepages enabled',
    ],
    [
      'memory that does not divide into pages',
      {
        domain: {
          cpu: { cores: 4, dedicatedCpuPlacement: true, numa: { guestMappingPassthrough: {} } },
          memory: { guest: '1025Mi', hugepages: { pageSize: '2Mi' } },
        },
        ...PINNED,
      },
      "requested memory can't be divided through the numa page size: {1074790400 b} mod 2097152 != 0",
    ],
    [
      'Grace devices without their gate',
      { options: { GraceHostDeviceAliases: ['gpu-a'] } },
      'GraceIOVirtualization conversion requested without the GraceIOVirtualization feature gate',
    ],
    [
      'a huge page that is no amount',
      { domain: numaDomain('2Megs'), ...PINNED },
      'failed to determine if hugepages are enabled: could not parse hugepage value 2Megs: quantities must match the ' +
        "regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    [
      'a huge page of less than nothing',
      { domain: numaDomain('-2Mi'), ...PINNED },
      'failed to determine if hugepages are enabled: could not convert page size to MiB -2Mi: ' +
        "Memory size '-2Mi' must be greater than or equal to 0",
    ],
    [
      'a huge page of nothing, over which the model dies',
      { domain: numaDomain('0'), ...PINNED },
      'failed to determine if hugepages are enabled: a page of 0 holds nothing',
    ],
    [
      'more vCPUs than would fit into memory',
      { domain: { cpu: { sockets: 4, maxSockets: 4_294_967_295 } } },
      '4294967295 vCPUs are more than the 16384 possible',
    ],
    [
      'more IO threads than would fit into memory',
      { domain: { ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: 4_294_967_295 } } },
      '4294967295 IO threads for 0 disks are too many',
    ],
    [
      'negative memory',
      { domain: { memory: { guest: '-1Mi' } } },
      "Memory size '-1Mi' must be greater than or equal to 0",
    ],
  ];

  test.each(cases)('%s', (_title, change, message) => {
    expect(() => convertWith(change)).toThrow(new LauncherError('ConvertFailed', message));
  });
});

describe('placement', () => {
  const nic = { name: 'nic', deviceName: 'a.b/nic' };
  const numa = {
    domain: {
      cpu: { cores: 2, dedicatedCpuPlacement: true, numa: { guestMappingPassthrough: {} } },
      memory: { guest: '1Gi', hugepages: { pageSize: '2Mi' } },
      devices: { hostDevices: [nic] },
    },
    context: { podCPUSet: [4, 5], env: { PCI_RESOURCE_A_B_NIC: '0000:05:00.1' } },
    options: { topology: { numaCells: CELLS }, clusterConfig: { PCINUMAAwareTopologyEnabled: true } },
  };

  test('a device lies behind an expander bus of the guest cell on its host node', () => {
    const circumstances = { hostPciDevices: new Map([['0000:05:00.1', { numaNode: 1 }]]) };
    const { Devices } = convertWith({ ...numa, circumstances });
    expect(Devices.Controllers?.slice(-2)).toEqual([
      { Type: 'pci', Index: '1', Model: 'pcie-expander-bus', Target: { BusNr: 254, NUMANode: 0 } },
      {
        Type: 'pci',
        Index: '2',
        Model: 'pcie-root-port',
        Address: { Type: 'pci', Domain: '0x0000', Bus: '1', Slot: '0x00', Function: '0x0' },
      },
    ]);
    expect(Devices.HostDevices?.[0]?.Address).toMatchObject({ Bus: '2', Slot: '0x00' });
  });

  test('NUMA passthrough refuses a device that has no place', () => {
    expect(() => convertWith(numa)).toThrow(
      'failed to process strict PCIe NUMA-aware topology: strict PCI NUMA-aware placement failed: device 0000:05:00.1 ' +
        'cannot be placed on a NUMA-aware PCIe topology: no guest NUMA node mapping is available',
    );
  });

  test('the root complex skips the slots that QEMU keeps, and is full after 0x1e', () => {
    const disks = (count: number): ConversionChange => ({
      annotations: { 'kubevirt.io/placePCIDevicesOnRootComplex': 'true' },
      domain: {
        devices: {
          autoattachPodInterface: false,
          disks: Array.from({ length: count }, (_none, index) => ({
            name: `d${String(index)}`,
            disk: { bus: 'virtio' as const },
          })),
        },
      },
      spec: {
        volumes: Array.from({ length: count }, (_none, index) => ({
          name: `d${String(index)}`,
          emptyDisk: { capacity: '1Gi' },
        })),
      },
    });
    const { Devices } = convertWith(disks(24));
    const slots = Devices.Disks?.map(({ Address }) => Address?.Slot) ?? [];
    expect(slots[0]).toBe('0x05');
    expect(slots).not.toContain('0x1b');
    expect(Devices.Ballooning?.Address?.Slot).toBe('0x1e');
    expect(() => convertWith(disks(25))).toThrow('No space left on the root PCI bus.');
  });

  test('an annotation that is no number stops the port count', () => {
    const change = { annotations: { 'kubevirt.io/pci-interface-slot-count': 'many' } };
    expect(() => countHotplugPorts(vmiWith(change), convertWith(change))).toThrow(
      'invalid kubevirt.io/pci-interface-slot-count annotation value "many": strconv.Atoi: parsing "many": invalid syntax',
    );
    const frozen = { annotations: { 'kubevirt.io/pci-interface-slot-count': '11' } };
    expect(countHotplugPorts(vmiWith(frozen), convertWith(frozen))).toMatchObject({ placeholderInterfaces: 10 });
  });

  test.each(['99999999999999999999', '1000000000'])('%s slots are not laid out one by one', (count) => {
    const change = { annotations: { 'kubevirt.io/pci-interface-slot-count': count } };
    expect(() => countHotplugPorts(vmiWith(change), convertWith(change))).toThrow(
      `invalid kubevirt.io/pci-interface-slot-count annotation value "${count}": ` +
        `strconv.Atoi: parsing "${count}": value out of range`,
    );
  });

  test('emulator threads make the pinned CPUs even where the cluster asks for it', () => {
    const { CPUTune } = convertWith({
      domain: { cpu: { cores: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true } },
      annotations: { 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': '' },
      ...PINNED,
    });
    expect(CPUTune?.EmulatorPin?.CPUSet).toBe('4,5');
  });

  test.each([
    [2, [['0,1'], ['4,5']]],
    [3, [['0,1'], ['4'], ['5']]],
  ])('%i IO threads share the CPUs in even slices', (count, expected) => {
    const disks = Array.from({ length: count }, (_none, index) => ({
      name: `d${String(index)}`,
      disk: { bus: 'virtio' as const },
    }));
    const { CPUTune } = convertWith({
      domain: {
        cpu: { cores: 4, dedicatedCpuPlacement: true },
        ioThreadsPolicy: 'auto',
        resources: { requests: { cpu: '4' } },
        devices: { disks },
      },
      spec: { volumes: disks.map(({ name }) => ({ name, emptyDisk: { capacity: '1Gi' } })) },
      ...PINNED,
    });
    expect(CPUTune?.IOThreadPin?.map(({ CPUSet }) => [CPUSet])).toEqual(expected);
  });
});

describe('variants that no recorded case shows', () => {
  test('passt forwards everything, unless ports are named or Istio keeps some', () => {
    const passt = (ports: { port: number; protocol?: string }[], annotations: Record<string, string> = {}): unknown =>
      convertWith({
        annotations,
        domain: { devices: { interfaces: [{ name: 'n', passtBinding: {}, ports }] } },
        spec: { networks: [{ name: 'n', pod: {} }] },
        status: { interfaces: [{ name: 'n', podInterfaceName: 'eth0' }] },
      }).Devices.Interfaces?.[0]?.PortForward;
    expect(passt([])).toEqual([{ Proto: 'tcp' }, { Proto: 'udp' }]);
    expect(passt([{ port: -1 }, { port: 9, protocol: 'SCTP' }])).toEqual([{ Proto: 'tcp' }, { Proto: 'udp' }]);
    const istio = passt([], { 'sidecar.istio.io/inject': 'TRUE' }) as { Proto: string; Ranges: unknown[] }[];
    expect(istio.map(({ Proto }) => Proto)).toEqual(['tcp']);
    expect(istio[0]?.Ranges).toHaveLength(10);
  });

  test('FM-5.5 a multi-queue card has a queue per vCPU and never more than 256', () => {
    const { Devices } = convertWith({
      domain: { cpu: { sockets: 300 }, devices: { networkInterfaceMultiqueue: true } },
      options: { interfaceDomainAttachment: { default: 'tap' } },
    });
    expect(Devices.Interfaces?.[0]?.Driver?.Queues).toBe(256);
  });

  test('only the first virtual GPU shows its screen when none says anything of it', () => {
    const { Devices } = convertWith({
      domain: {
        devices: {
          gpus: [
            { name: 'a', deviceName: 'v/g', virtualGPUOptions: {} },
            { name: 'b', deviceName: 'v/g' },
          ],
        },
      },
      context: { env: { MDEV_PCI_RESOURCE_V_G: 'u1,u2' } },
    });
    expect(Devices.HostDevices?.map(({ Display, RamFB }) => [Display, RamFB])).toEqual([
      ['on', 'on'],
      [undefined, undefined],
    ]);
  });

  test('a migration target takes no host devices', () => {
    const { Devices } = convertWith({
      domain: {
        devices: { hostDevices: [{ name: 'k', deviceName: 'a/b' }], gpus: [{ name: 'g', deviceName: 'v/g' }] },
      },
      circumstances: { isMigrationTarget: true },
    });
    expect(Devices.HostDevices).toBeUndefined();
  });

  test('without options of the request the domain has no statistics period and no SMBIOS texts', () => {
    const spec = convertWith({ circumstances: { options: undefined } });
    expect(spec.Devices.Ballooning).not.toHaveProperty('Stats');
    expect(spec.SysInfo?.System).toEqual([{ Name: 'uuid', Value: 'f1' }]);
  });

  test('a quantity that Go does not hold as an integer loses a byte', () => {
    expect(convertWith({ domain: { memory: { guest: '128Ti' } } }).Memory.Value).toBe(140_737_488_355_327);
  });

  test('memory hotplug is spelled out for a libvirt that cannot complete it', () => {
    const spec = convertWith({ domain: { memory: { guest: '1Gi', maxGuest: '4Gi' }, cpu: { sockets: 2 } } });
    const completed = completeForLibvirt(spec, 9_000_000n);
    expect(completed.MaxMemory?.Slots).toBe(1);
    expect(completed.CPU.NUMA?.Cells).toEqual([{ ID: '0', CPUs: '0-7', Memory: 1_048_576n, Unit: 'KiB' }]);
    expect(completeForLibvirt(spec, 10_000_000n)).toBe(spec);
  });
});
