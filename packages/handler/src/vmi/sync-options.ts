import type { ClusterConfig } from '../cluster-config.ts';
import type { Vmi, VmiInterface } from '../model.ts';
import type { ClusterFacts } from './observed.ts';
import type { SyncOptions } from './steps.ts';

/** PCI ids of NVIDIA Grace devices that get an alias. @source KubeVirt v1.9.0 pkg/virt-handler/options.go */
const GRACE_PCI_SELECTORS: ReadonlySet<string> = new Set(['10DE:2342', '10DE:2348', '10DE:2941']);

function attachmentOf(iface: VmiInterface, config: ClusterConfig): string | undefined {
  if (iface.masquerade !== undefined || iface.bridge !== undefined) return 'tap';
  if (iface.binding === undefined) return undefined;
  const type = config.bindingPlugins[iface.binding.name]?.domainAttachmentType;
  return type === 'managedTap' ? 'tap' : type;
}

/**
 * How each interface is attached to the domain; interfaces that attach by themselves are left out.
 *
 * @source KubeVirt v1.9.0 pkg/network/domainspec (DomainAttachmentByInterfaceName)
 */
function domainAttachments(vmi: Vmi, config: ClusterConfig): Map<string, string> {
  const attachments = new Map<string, string>();
  for (const iface of vmi.spec.domain.devices.interfaces ?? []) {
    const attachment = attachmentOf(iface, config);
    if (attachment !== undefined && attachment !== '') attachments.set(iface.name, attachment);
  }
  return attachments;
}

/** Names of volumes whose claim is preallocated, in the order of the status. */
function preallocatedVolumes(vmi: Vmi): string[] {
  return (vmi.status?.volumeStatus ?? [])
    .filter((volume) => volume.persistentVolumeClaimInfo?.preallocated === true)
    .map((volume) => volume.name);
}

function graceAliases(vmi: Vmi, config: ClusterConfig): string[] {
  if (!config.isGateOn('GraceIOVirtualization')) return [];
  const resources = new Set(
    config.pciHostDevices
      .filter((device) => GRACE_PCI_SELECTORS.has(device.pciVendorSelector.toUpperCase()))
      .map((device) => device.resourceName),
  );
  const { gpus = [], hostDevices = [] } = vmi.spec.domain.devices;
  const isGrace = (device: { deviceName?: string }): boolean => resources.has(device.deviceName ?? '');
  return [
    ...gpus.filter(isGrace).map((gpu) => `gpu-${gpu.name}`),
    ...hostDevices.filter(isGrace).map((device) => `hostdevice-${device.name}`),
  ].sort();
}

/**
 * What goes along with the VMI in SyncVirtualMachine.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/options.go (virtualMachineOptions)
 */
export function syncOptions(vmi: Vmi, { config, topology, plugins }: ClusterFacts): SyncOptions {
  const sendsPlugins = config.isGateOn('Plugins') && plugins.length > 0;
  return {
    VirtualMachineSMBios: config.smbios,
    MemBalloonStatsPeriod: config.memBalloonStatsPeriod,
    PreallocatedVolumes: preallocatedVolumes(vmi),
    topology: topology ?? {},
    clusterConfig: {
      FreePageReportingDisabled: config.freePageReportingDisabled,
      BochsDisplayForEFIGuests: config.bochsDisplayForEfiGuests,
      SerialConsoleLogDisabled: config.serialConsoleLogDisabled,
      PCINUMAAwareTopologyEnabled: config.isGateOn('PCINUMAAwareTopology'),
      VGPULiveMigrationEnabled: config.isGateOn('VGPULiveMigration'),
      GraceIOVirtualizationEnabled: config.isGateOn('GraceIOVirtualization'),
    },
    interfaceDomainAttachment: domainAttachments(vmi, config),
    ...(sendsPlugins ? { pluginsJson: Buffer.from(JSON.stringify(plugins)) } : {}),
    GraceHostDeviceAliases: graceAliases(vmi, config),
  };
}
