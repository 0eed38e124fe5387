import type {
  Domain,
  DomainInterface,
  DomainInterfacePortForward,
  DomainInterfacePortForwardRange,
  Port,
  Vmi,
  VmiInterface,
} from '@virtwire/vm-model';

import { LauncherError, textOf } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import { guestTopology, vcpuCount } from './cpu.ts';
import { parsePciAddress } from './pci-address.ts';
import { annotationOf } from './vmi-traits.ts';
import { nonEmpty } from './non-empty.ts';

const TAP = 'tap';
const MAX_QUEUES = 256;
const ISTIO_ANNOTATION = 'sidecar.istio.io/inject';
const ISTIO_PORTS = [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090];
const PASST_LOG = '/var/run/kubevirt/passt.log';

/**
 * Network cards in spec order. What the pod knows (tap name, MAC, MTU) is filled in before the define.
 *
 * @throws {LauncherError} `ConvertFailed` when a network or the pod's interface is missing.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/network
 */
export function configureInterfaces(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const networks = new Set((vmi.spec.networks ?? []).map(({ name }) => name));
  const result: DomainInterface[] = [];
  for (const iface of vmi.spec.domain.devices.interfaces ?? []) {
    if (iface.state === 'absent') continue;
    if (!networks.has(iface.name)) {
      throw new LauncherError('ConvertFailed', `failed to find network ${iface.name}`);
    }
    const attachment = context.attachments[iface.name];
    if (iface.sriov !== undefined || (iface.binding !== undefined && attachment !== TAP)) continue;
    result.push(renderInterface(vmi, iface, attachment, context));
  }
  if (result.length > 0) domain.Spec.Devices.Interfaces = result;
}

function renderInterface(
  vmi: Vmi,
  iface: VmiInterface,
  attachment: string | undefined,
  context: ConverterContext,
): DomainInterface {
  const model = nonEmpty(iface.model) ?? 'virtio';
  const result: DomainInterface = {
    Type: '',
    Model: { Type: model === 'virtio' ? context.virtioModel : model },
    Alias: { Name: iface.name, UserDefined: true },
  };
  if (model === 'virtio') Object.assign(result, virtioDriver(vmi, context));
  if (iface.pciAddress) {
    try {
      result.Address = parsePciAddress(iface.pciAddress);
    } catch (error) {
      const message = `failed to configure interface ${iface.name}: ${textOf(error)}`;
      throw new LauncherError('ConvertFailed', message, { cause: error });
    }
  }
  if ((iface.acpiIndex ?? 0) > 0) result.ACPI = { Index: iface.acpiIndex };
  if (iface.macAddress) result.MAC = { MAC: iface.macAddress };
  if (attachment === TAP) attachTap(result, iface, context);
  else if (iface.passt !== undefined || iface.passtBinding !== undefined) attachPasst(result, vmi, iface);
  return result;
}

function attachTap(result: DomainInterface, iface: VmiInterface, context: ConverterContext): void {
  result.Type = 'ethernet';
  if (iface.bootOrder !== undefined) result.BootOrder = { Order: iface.bootOrder };
  // The boot ROM is of no use to a card that nobody boots from, and knows nothing of encrypted memory.
  const needsRom = iface.bootOrder !== undefined && !context.usesIommu;
  if (context.arch.tunesRom && !needsRom) result.Rom = { Enabled: 'no' };
  if (iface.state === 'down') result.LinkState = { State: 'down' };
}

function virtioDriver(vmi: Vmi, context: ConverterContext): Pick<DomainInterface, 'Driver'> {
  const isMultiqueue = vmi.spec.domain.devices.networkInterfaceMultiqueue === true;
  if (!isMultiqueue && !context.usesIommu) return {};
  return {
    Driver: {
      Name: 'vhost',
      ...(isMultiqueue ? { Queues: Math.min(vcpuCount(guestTopology(vmi)), MAX_QUEUES) } : {}),
      ...(context.usesIommu ? { IOMMU: 'on' } : {}),
    },
  };
}

function attachPasst(result: DomainInterface, vmi: Vmi, iface: VmiInterface): void {
  const podInterface = vmi.status?.interfaces?.find(({ name }) => name === iface.name)?.podInterfaceName;
  if (!podInterface) {
    throw new LauncherError(
      'ConvertFailed',
      `pod interface name not found in vmi ${vmi.metadata.name} status, for interface ${iface.name}`,
    );
  }
  result.Type = 'vhostuser';
  result.Source = { Device: podInterface };
  result.Backend = { Type: 'passt', LogFile: PASST_LOG };
  result.PortForward = portForwards(iface.ports ?? [], annotationOf(vmi, ISTIO_ANNOTATION)?.toLowerCase() === 'true');
}

function portForwards(ports: readonly Port[], hasIstio: boolean): DomainInterfacePortForward[] {
  const excluded = hasIstio ? ISTIO_PORTS.map((port) => ({ Start: port, Exclude: 'yes' })) : [];
  const tcp = [...excluded, ...rangesOf(ports, 'tcp')];
  const udp = rangesOf(ports, 'udp');
  const forwardsAll = tcp.length === 0 && udp.length === 0;
  const result: DomainInterfacePortForward[] = [];
  if (forwardsAll || tcp.length > 0) result.push(forward('tcp', tcp));
  if (forwardsAll || udp.length > 0) result.push(forward('udp', udp));
  return result;
}

function forward(proto: string, ranges: DomainInterfacePortForwardRange[]): DomainInterfacePortForward {
  return ranges.length === 0 ? { Proto: proto } : { Proto: proto, Ranges: ranges };
}

function rangesOf(ports: readonly Port[], proto: string): DomainInterfacePortForwardRange[] {
  return ports
    .filter(({ protocol, port }) => (nonEmpty(protocol) ?? 'tcp').toLowerCase() === proto && port >= 0)
    .map(({ port }) => ({ Start: port }));
}
