/** The parts of the KubeVirt object that the handler reads. Unknown keys are ignored. */
export interface KubeVirtObject {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly configuration?: KubeVirtConfiguration;
  readonly defaultArchitecture?: string;
}

/** `spec.configuration` of the KubeVirt object. */
export interface KubeVirtConfiguration {
  readonly developerConfiguration?: {
    readonly useEmulation?: boolean;
    readonly featureGates?: readonly string[];
    readonly disabledFeatureGates?: readonly string[];
    readonly minimumReservePVCBytes?: number;
    readonly pvcTolerateLessSpaceUpToPercent?: number;
  };
  readonly smbios?: SmBios;
  readonly memBalloonStatsPeriod?: number;
  readonly virtualMachineOptions?: {
    readonly disableFreePageReporting?: object;
    readonly disableSerialConsoleLog?: object;
  };
  readonly network?: { readonly binding?: Readonly<Record<string, BindingPlugin>> };
  readonly permittedHostDevices?: {
    readonly pciHostDevices?: readonly { readonly pciVendorSelector: string; readonly resourceName: string }[];
    readonly mediatedDevices?: readonly { readonly mdevNameSelector: string; readonly resourceName: string }[];
  };
  readonly evictionStrategy?: string;
  readonly supportedGuestAgentVersions?: readonly string[];
  readonly hypervisors?: readonly { readonly name: string }[];
  readonly additionalGuestMemoryOverheadRatio?: string;
}

/** System information that guests see. */
export interface SmBios {
  readonly family?: string;
  readonly product?: string;
  readonly manufacturer?: string;
  readonly sku?: string;
  readonly version?: string;
}

/** A registered network binding plugin. */
export interface BindingPlugin {
  readonly domainAttachmentType?: string;
  readonly migration?: { readonly method?: string };
}

/** Effective configuration: built-in defaults overlaid by the KubeVirt object. */
export interface ClusterConfig {
  readonly smbios: SmBios;
  readonly memBalloonStatsPeriod: number;
  readonly freePageReportingDisabled: boolean;
  readonly serialConsoleLogDisabled: boolean;
  readonly bochsDisplayForEfiGuests: boolean;
  readonly useEmulation: boolean;
  readonly bindingPlugins: Readonly<Record<string, BindingPlugin>>;
  readonly mediatedDeviceResources: readonly string[];
  readonly pciHostDevices: readonly { readonly pciVendorSelector: string; readonly resourceName: string }[];
  readonly evictionStrategy: string;
  readonly supportedGuestAgentVersions: readonly string[];
  readonly architecture: string;
  /** Name of the hypervisor's device below `/dev`: `kvm`, or `mshv` for hyperv-direct. */
  readonly hypervisorDevice: string;
  readonly minimumReservePvcBytes: number;
  readonly lessPvcSpaceTolerationPercent: number;
  readonly guestMemoryOverheadRatio: string | undefined;
  isGateOn(gate: string): boolean;
}

/** Gates of v1.9.0 that are on unless listed as disabled, as far as the handler asks for them. */
const GATES_ON_BY_DEFAULT: ReadonlySet<string> = new Set(['ImageVolume', 'NodeRestriction']);
const DEFAULT_AGENT_VERSIONS = ['2.*', '3.*', '4.*', '5.*'];

/**
 * Overlays the KubeVirt object on the built-in defaults.
 *
 * @source KubeVirt v1.9.0 pkg/virt-config/virt-config.go, configuration.go
 */
export function clusterConfig(kubevirt: KubeVirtObject = {}): ClusterConfig {
  const config = kubevirt.configuration ?? {};
  const developer = config.developerConfiguration ?? {};
  const isGateOn = (gate: string): boolean => {
    if (developer.featureGates?.includes(gate) === true) return true;
    if (developer.disabledFeatureGates?.includes(gate) === true) return false;
    return GATES_ON_BY_DEFAULT.has(gate);
  };
  const usesMshv =
    isGateOn('ConfigurableHypervisor') && config.hypervisors?.some((h) => h.name === 'hyperv-direct') === true;
  return {
    smbios: { family: 'KubeVirt', product: 'None', manufacturer: 'KubeVirt', ...config.smbios },
    memBalloonStatsPeriod: config.memBalloonStatsPeriod ?? 10,
    freePageReportingDisabled: config.virtualMachineOptions?.disableFreePageReporting !== undefined,
    serialConsoleLogDisabled: config.virtualMachineOptions?.disableSerialConsoleLog !== undefined,
    bochsDisplayForEfiGuests: kubevirt.annotations?.['kubevirt.io/vga-display-efi-x86'] === undefined,
    useEmulation: developer.useEmulation === true,
    bindingPlugins: config.network?.binding ?? {},
    mediatedDeviceResources: (config.permittedHostDevices?.mediatedDevices ?? []).map((d) => d.resourceName),
    pciHostDevices: config.permittedHostDevices?.pciHostDevices ?? [],
    evictionStrategy: config.evictionStrategy ?? 'None',
    supportedGuestAgentVersions: config.supportedGuestAgentVersions ?? DEFAULT_AGENT_VERSIONS,
    architecture: kubevirt.defaultArchitecture ?? 'amd64',
    hypervisorDevice: usesMshv ? 'mshv' : 'kvm',
    minimumReservePvcBytes: developer.minimumReservePVCBytes ?? 131_072,
    lessPvcSpaceTolerationPercent: developer.pvcTolerateLessSpaceUpToPercent ?? 10,
    guestMemoryOverheadRatio: config.additionalGuestMemoryOverheadRatio,
    isGateOn,
  };
}
