import { createHash } from 'node:crypto';
import type { Network } from './vmi/networks.ts';

/** Hex digits of a hashed name: the kernel's 15 characters less `-nic`. */
const HASH_DIGITS = 11;

/** True for the network that gives the pod its own address: the pod network, or a multus network marked default. */
export function isPrimaryNetwork(network: Network): boolean {
  return network.pod !== undefined || network.multus?.default === true;
}

/**
 * Name of a secondary network's link in the pod.
 *
 * @source KubeVirt v1.9.0 pkg/network/namescheme/networknamescheme.go
 */
export function hashedPodLinkName(networkName: string): string {
  return `pod${createHash('sha256').update(networkName).digest('hex').slice(0, HASH_DIGITS)}`;
}

/** Bridge between a pod link and the guest's tap: `k6t-eth0`. */
export function inPodBridgeName(podLink: string): string {
  return `k6t-${withoutPod(podLink)}`;
}

/** The guest's tap device: `tap0` for the primary network. */
export function tapDeviceName(podLink: string, network: Network): string {
  return isPrimaryNetwork(network) ? 'tap0' : `tap${podLink.slice(3)}`;
}

/** Name of a pod link once a dummy has taken its own: `eth0-nic`. */
export function renamedPodLink(podLink: string): string {
  return `${withoutPod(podLink)}-nic`;
}

function withoutPod(podLink: string): string {
  return podLink.startsWith('pod') ? podLink.slice(3) : podLink;
}
