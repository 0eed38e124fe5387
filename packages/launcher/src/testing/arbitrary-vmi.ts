import fc from 'fast-check';

import { type Vmi, type VmiDomain, applyVmiDefaults, clusterDefaults } from '@virtwire/vm-model';

import { circumstancesFromJson } from '../converter/circumstances-json.ts';
import type { Architecture } from '../converter/architecture.ts';
import type { Circumstances } from '../converter/circumstances.ts';
import {
  type CardParts,
  type HostDeviceParts,
  cards,
  hostDevices,
  layOutCards,
  layOutHostDevices,
  simpleDevices,
  tpm,
} from './arbitrary-devices.ts';
import { type DiskParts, drives, layOutDisks } from './arbitrary-disks.ts';
import { type Machine, NODE_TOPOLOGY, arbitraryMachine, podCpuSet } from './arbitrary-machine.ts';

/** A VMI as a client would write it, with the circumstances it is converted in. */
export interface ArbitraryConversion {
  readonly vmi: Vmi;
  readonly circumstances: Circumstances;
}

const UUID = 'f1f1f1f1-0000-4000-8000-000000000001';
const ROOT_COMPLEX = 'kubevirt.io/placePCIDevicesOnRootComplex';
const BLOCK_SIZES = { logical: 4096, physical: 4096, discardGranularity: 0 };
const bool = fc.boolean();

const annotations = fc.record(
  {
    'kubevirt.io/disablePCIHole64': fc.constantFrom('true', 'false'),
    'kubevirt.io/free-page-reporting-disabled': fc.constant('true'),
    [ROOT_COMPLEX]: fc.constantFrom('true', 'false'),
    'kubevirt.io/memfd': fc.constant('false'),
    'kubevirt.io/ignitiondata': fc.constant('{"ignition":{}}'),
    'kubevirt.io/pci-interface-slot-count': fc.constantFrom('0', '6'),
    'kubevirt.io/qgs-socket-path': fc.constant('/var/run/tdx-qgs/qgs.socket'),
    'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': fc.constant(''),
    'sidecar.istio.io/inject': fc.constant('true'),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Record<string, string>>;

function partsOf(architecture: Architecture) {
  return fc.record({
    machine: arbitraryMachine(architecture),
    devices: simpleDevices,
    tpm,
    drives,
    cards,
    hostDevices,
    isPaused: bool,
    annotations,
    podCpuSet,
    logVerbosity: fc.constantFrom('2', '6'),
    clusterConfig: fc.record(
      {
        FreePageReportingDisabled: bool,
        BochsDisplayForEFIGuests: bool,
        SerialConsoleLogDisabled: bool,
        PCINUMAAwareTopologyEnabled: bool,
      },
      { requiredKeys: [] },
    ),
    preallocated: fc.subarray(['d0', 'd1', 'd2', 'd3']),
    tscFrequency: fc.constantFrom(undefined, 2_400_000_000),
  });
}

type Parts = ReturnType<typeof partsOf> extends fc.Arbitrary<infer T> ? T : never;

/**
 * VMIs that the API of a cluster of an architecture would take, over every family of devices, defaults applied, with
 * pods and nodes that have what they need.
 */
export function arbitraryConversionOn(architecture: Architecture): fc.Arbitrary<ArbitraryConversion> {
  return partsOf(architecture).map((given) => {
    const mayPlace = given.annotations[ROOT_COMPLEX] !== 'true';
    const disks = layOutDisks(given.drives, mayPlace);
    // A function behind the bus of its NUMA cell has its place already.
    const hasCells = given.machine.cpu?.numa !== undefined;
    const network = layOutCards(given.cards, { taps: mayPlace, functions: mayPlace && !hasCells });
    const host = layOutHostDevices(given.hostDevices);
    const written = assemble(given, { architecture, disks, network, host });
    const vmi = applyVmiDefaults(written, clusterDefaults(architecture), UUID);
    return { vmi, circumstances: circumstancesOf(vmi, given, { architecture, disks, network, host }) };
  });
}

/** The same on amd64. */
export const arbitraryConversion = arbitraryConversionOn('amd64');

interface LaidOut {
  readonly architecture: Architecture;
  readonly disks: DiskParts;
  readonly network: CardParts;
  readonly host: HostDeviceParts;
}

/** arm64 has no watchdog, s390x one of its own. */
function watchdogOf(architecture: Architecture, action: { action?: string }): Pick<VmiDomain['devices'], 'watchdog'> {
  if (architecture === 'arm64') return {};
  return { watchdog: architecture === 's390x' ? { name: 'w', diag288: action } : { name: 'w', i6300esb: action } };
}

function devicesOf(given: Parts, { architecture, disks, network, host }: LaidOut): VmiDomain['devices'] {
  const { watchdog, ...others } = given.devices;
  // The BIOS needs the port that it is to write to.
  const needsSerial = given.machine.firmware?.bootloader?.bios !== undefined;
  return {
    ...others,
    ...(given.tpm === undefined ? {} : { tpm: given.tpm }),
    ...(watchdog === undefined ? {} : watchdogOf(architecture, watchdog)),
    ...(needsSerial && others.autoattachSerialConsole === false ? { autoattachSerialConsole: true } : {}),
    ...(host.needsScreen ? { autoattachGraphicsDevice: true } : {}),
    ...host.devices,
    disks: disks.disks,
    interfaces: network.interfaces,
    ...(disks.filesystems.length > 0 ? { filesystems: disks.filesystems } : {}),
  };
}

/** Host CPUs are pinned to IO threads, of which a VM without disks has none. */
function withThreadsFor({ disks }: DiskParts, machine: Machine): Machine {
  // The volume of an ACPI table becomes a disk by default.
  const hasDisks = disks.length > 0 || machine.firmware?.acpi !== undefined;
  if (hasDisks || machine.ioThreadsPolicy === 'supplementalPool') return machine;
  const result = { ...machine };
  delete result.ioThreadsPolicy;
  return result;
}

function assemble(given: Parts, laidOut: LaidOut): Vmi {
  const { disks, network } = laidOut;
  const machine = withThreadsFor(disks, given.machine);
  const slic = machine.firmware?.acpi === undefined ? [] : [{ name: 'slic', secret: { secretName: 'slic' } }];
  return structuredClone({
    metadata: {
      name: 'vm',
      namespace: 'ns',
      uid: '5e1f0a00-0000-4000-8000-000000000001',
      annotations: given.annotations,
    },
    spec: {
      domain: { ...machine, devices: devicesOf(given, laidOut) },
      volumes: [...disks.volumes, ...slic],
      networks: network.networks,
      ...(given.isPaused ? { startStrategy: 'Paused' as const } : {}),
    },
    status: {
      volumeStatus: [
        ...disks.volumeStatus,
        ...(disks.volumeStatus.length > 0 ? slic.map(({ name }) => ({ name, target: '' })) : []),
      ],
      interfaces: network.statuses,
      ...(given.devices.autoattachVSOCK === true ? { VSOCKCID: 42 } : {}),
      ...(given.tscFrequency === undefined ? {} : { topologyHints: { tscFrequency: given.tscFrequency } }),
    },
  });
}

function circumstancesOf(vmi: Vmi, given: Parts, { architecture, disks, network, host }: LaidOut): Circumstances {
  // A card that defaulting adds is a tap like those that are named.
  const isNamed = network.interfaces.length > 0;
  const attachments = isNamed ? network.attachments : { default: 'tap' };
  const circumstances = circumstancesFromJson(
    vmi,
    {
      hostArchitecture: architecture,
      hypervisorDeviceAvailable: false,
      podCPUSet: given.podCpuSet,
      blockVolumes: disks.blockVolumes,
      applyCBT: Object.fromEntries(disks.trackedVolumes.map((name) => [name, `/cbt/${name}.qcow2`])),
      env: { ...host.environment, VIRT_LAUNCHER_LOG_VERBOSITY: given.logVerbosity },
      networkInfo: { interfaces: network.networkInfo },
    },
    {
      MemBalloonStatsPeriod: 10,
      interfaceDomainAttachment: attachments,
      PreallocatedVolumes: given.preallocated,
      topology: NODE_TOPOLOGY,
      clusterConfig: given.clusterConfig,
    },
  );
  return {
    ...circumstances,
    blockSizes: new AnyKey(BLOCK_SIZES),
    hostPciDevices: new AnyKey({ numaNode: 0 }),
    deviceClaims: new Map([...network.claims, ...host.claims]),
  };
}

/** A map in which every key is found. */
class AnyKey<T> extends Map<string, T> {
  readonly #value: T;

  constructor(value: T) {
    super();
    this.#value = value;
  }

  override get(): T {
    return this.#value;
  }
}
