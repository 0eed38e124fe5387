import { quantityValue } from '@virtwire/vm-model';
import { HandlerError } from '../../errors.ts';
import type { Network, Vmi, VmiInterface } from '../../model.ts';

/** Most queues that a tap gets. @source KubeVirt v1.9.0 pkg/network/multiqueue/multiqueue.go */
const MAX_QUEUES = 256;

/** How an interface reaches the pod's network, as far as the node has something to do for it. */
type Binding = 'bridge' | 'masquerade' | 'passt' | 'sriov' | 'managedTap' | 'plugin';

/** A registered network binding plugin, as far as this part reads it. */
export interface BindingPluginType {
  readonly domainAttachmentType?: string;
}

/** An interface of the VMI with the network that it belongs to. */
export interface NetworkInterface {
  readonly network: Network;
  readonly iface: VmiInterface;
  readonly binding: Binding;
}

/**
 * Interfaces of the named networks, in the order of the names.
 *
 * @throws {HandlerError} `Invalid` for a network without an interface and for an interface without a known binding.
 */
export function interfacesOf(
  vmi: Vmi,
  networkNames: readonly string[],
  plugins: Readonly<Record<string, BindingPluginType>>,
): NetworkInterface[] {
  return networkNames.flatMap((name) => {
    const network = vmi.spec.networks?.find((n) => n.name === name);
    const iface = vmi.spec.domain.devices.interfaces?.find((i) => i.name === name);
    if (network === undefined || iface === undefined) {
      throw new HandlerError('Invalid', `no iface matching with network ${name}`);
    }
    if (iface.sriov !== undefined) return [];
    return [{ network, iface, binding: bindingOf(iface, plugins) }];
  });
}

function bindingOf(iface: VmiInterface, plugins: Readonly<Record<string, BindingPluginType>>): Binding {
  if (iface.bridge !== undefined) return 'bridge';
  if (iface.masquerade !== undefined) return 'masquerade';
  if (iface.passtBinding !== undefined) return 'passt';
  if (iface.binding !== undefined) {
    return plugins[iface.binding.name]?.domainAttachmentType === 'managedTap' ? 'managedTap' : 'plugin';
  }
  throw new HandlerError('Invalid', `undefined binding method: ${iface.name}`);
}

/** Queues of an interface's tap; 0 means a plain one. */
export function queueCount(vmi: Vmi, iface: VmiInterface): number {
  if (iface.model !== undefined && iface.model !== '' && iface.model !== 'virtio') return 0;
  const status = vmi.status?.interfaces?.find((s) => s.name === iface.name);
  if ((status?.infoSource ?? '').split(', ').includes('domain')) return status?.queueCount ?? 0;
  if (vmi.spec.domain.devices.networkInterfaceMultiqueue !== true) return 0;
  return Math.min(vcpuCount(vmi), MAX_QUEUES);
}

/** @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go GetCPUTopology */
function vcpuCount(vmi: Vmi): number {
  const { cpu, resources } = vmi.spec.domain;
  const [cores, sockets, threads] = [cpu?.cores ?? 0, cpu?.sockets ?? 0, cpu?.threads ?? 0].map(Number);
  if ([cores, sockets, threads].some((n) => n !== undefined && n > 0)) {
    return [cores, sockets, threads].reduce<number>((product, n) => product * Math.max(1, n ?? 1), 1);
  }
  const given = resources?.limits?.['cpu'] ?? resources?.requests?.['cpu'];
  return given === undefined ? 1 : Math.max(1, Number(quantityValue(given)));
}
