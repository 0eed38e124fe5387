import { createHash } from 'node:crypto';
import type { Network, Vmi } from '../../model.ts';
import type { PodNetwork } from './state.ts';

/** Hex digits of a hashed name: the kernel's 15 characters less `-nic`. */
const HASH_DIGITS = 11;
const PRIMARY_POD_LINK = 'eth0';

/** True for the network that gives the pod its own address: the pod network, or a multus network marked default. */
export function isPrimaryNetwork(network: Network): boolean {
  return network.pod !== undefined || network.multus?.default === true;
}

/** Name of a secondary network's link in the pod. @source KubeVirt v1.9.0 pkg/network/namescheme/networknamescheme.go */
export function hashedPodLinkName(networkName: string): string {
  return `pod${createHash('sha256').update(networkName).digest('hex').slice(0, HASH_DIGITS)}`;
}

/**
 * Names of the pod links of some networks. Secondary ones are hashed, or in pods of old releases `net1`, `net2`... in
 * the order of `networks`; any link of that form in the pod switches all of them.
 */
export function podLinkNames(vmi: Vmi, networks: readonly Network[], current: PodNetwork): Map<string, string> {
  const isOrdinal = current.interfaces.some((link) => /^net\d+$/.test(link.name));
  const names = new Map<string, string>();
  let ordinal = 0;
  for (const network of networks) {
    if (isPrimaryNetwork(network)) names.set(network.name, primaryPodLinkName(vmi, network));
    else names.set(network.name, isOrdinal ? `net${(ordinal += 1)}` : hashedPodLinkName(network.name));
  }
  return names;
}

/** Name of the pod link as hashed names have it; the cache files of an unplugged interface bear it. */
export function hashedNameOf(vmi: Vmi, network: Network): string {
  return isPrimaryNetwork(network) ? primaryPodLinkName(vmi, network) : hashedPodLinkName(network.name);
}

function primaryPodLinkName(vmi: Vmi, network: Network): string {
  const status = vmi.status?.interfaces?.find((i) => i.name === network.name);
  const given = status?.podInterfaceName;
  return given === undefined || given === '' ? PRIMARY_POD_LINK : given;
}

/** Bridge between the pod link and the tap. */
export function bridgeName(podLink: string): string {
  return `k6t-${withoutPod(podLink)}`;
}

/** Tap device of the guest. */
export function tapName(podLink: string, network: Network): string {
  return isPrimaryNetwork(network) ? 'tap0' : `tap${podLink.slice(3)}`;
}

/** The pod link's name once a dummy has taken its own. */
export function renamedPodLink(podLink: string): string {
  return `${withoutPod(podLink)}-nic`;
}

function withoutPod(podLink: string): string {
  return podLink.startsWith('pod') ? podLink.slice(3) : podLink;
}
