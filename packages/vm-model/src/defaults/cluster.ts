import type { EvictionStrategy } from '../vmi/vmi.ts';
import type { Quantity } from '../vmi/metadata.ts';

/** The cluster settings that defaulting reads, with KubeVirt's built-in values filled in. */
export interface ClusterDefaults {
  readonly architecture: string;
  readonly machineTypes: Readonly<Record<string, string>>;
  /** Model for VMIs that name none; empty: the architecture's own. */
  readonly cpuModel: string;
  readonly cpuRequest: Quantity;
  readonly evictionStrategy: EvictionStrategy | undefined;
  readonly networkInterface: string;
  readonly permitBridgeOnPodNetwork: boolean;
  readonly isLiveUpdate: boolean;
  /** 0: none. */
  readonly maxCpuSockets: number;
  readonly maxHotplugRatio: number;
  readonly maxGuest: Quantity | undefined;
  readonly hasEmulatorThreadParity: boolean;
  readonly qgsSocketPath: string;
}

const DEFAULT_CPU_REQUEST = '100m';
const DEFAULT_HOTPLUG_RATIO = 4;
const DEFAULT_MACHINES: Readonly<Record<string, string>> = {
  amd64: 'q35',
  arm64: 'virt',
  s390x: 's390-ccw-virtio',
};
const EMULATOR_PARITY_ANNOTATION = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';

/** The parts of a KubeVirt CR's `spec.configuration` that defaulting reads. */
export interface KubeVirtConfiguration {
  readonly machineType?: string;
  readonly architectureConfiguration?: Readonly<Record<string, { readonly machineType?: string } | string | undefined>>;
  readonly cpuModel?: string;
  readonly cpuRequest?: Quantity;
  readonly evictionStrategy?: EvictionStrategy;
  readonly network?: {
    readonly defaultNetworkInterface?: string;
    readonly permitBridgeInterfaceOnPodNetwork?: boolean;
  };
  readonly vmRolloutStrategy?: string;
  readonly liveUpdateConfiguration?: {
    readonly maxHotplugRatio?: number;
    readonly maxCpuSockets?: number;
    readonly maxGuest?: Quantity;
  };
  readonly confidentialCompute?: { readonly tdx?: { readonly attestation?: { readonly qgsSocketPath?: string } } };
}

/**
 * Cluster settings out of a KubeVirt CR, or KubeVirt's own where it says nothing.
 *
 * @param architecture of the control plane; a node without a cluster gives its own.
 * @source KubeVirt v1.9.0 pkg/virt-config/virt-config.go
 */
export function clusterDefaults(
  architecture: string,
  configuration: KubeVirtConfiguration = {},
  annotations: Readonly<Record<string, string>> = {},
): ClusterDefaults {
  const { liveUpdateConfiguration: live, network } = configuration;
  return {
    architecture: defaultArchitecture(configuration) ?? architecture,
    machineTypes: machineTypes(configuration),
    cpuModel: configuration.cpuModel ?? '',
    cpuRequest: configuration.cpuRequest ?? DEFAULT_CPU_REQUEST,
    evictionStrategy: configuration.evictionStrategy ?? 'None',
    networkInterface: network?.defaultNetworkInterface ?? 'bridge',
    permitBridgeOnPodNetwork: network?.permitBridgeInterfaceOnPodNetwork ?? true,
    isLiveUpdate: (configuration.vmRolloutStrategy ?? 'LiveUpdate') === 'LiveUpdate',
    maxCpuSockets: live?.maxCpuSockets ?? 0,
    maxHotplugRatio: live?.maxHotplugRatio ?? DEFAULT_HOTPLUG_RATIO,
    maxGuest: live?.maxGuest,
    hasEmulatorThreadParity: EMULATOR_PARITY_ANNOTATION in annotations,
    qgsSocketPath: configuration.confidentialCompute?.tdx?.attestation?.qgsSocketPath ?? '',
  };
}

/** A machine type for the whole cluster goes before those of the architectures. */
function machineTypes({ machineType, architectureConfiguration }: KubeVirtConfiguration): Record<string, string> {
  const types: Record<string, string> = { ...DEFAULT_MACHINES };
  for (const [architecture, value] of Object.entries(architectureConfiguration ?? {})) {
    if (typeof value === 'object' && value.machineType) types[architecture] = value.machineType;
  }
  if (!machineType) return types;
  return Object.fromEntries(Object.keys(types).map((architecture) => [architecture, machineType]));
}

/** The architecture of VMIs that name none, where the cluster says it. */
function defaultArchitecture({ architectureConfiguration }: KubeVirtConfiguration): string | undefined {
  const named = architectureConfiguration?.['defaultArchitecture'];
  return typeof named === 'string' && named !== '' ? named : undefined;
}
