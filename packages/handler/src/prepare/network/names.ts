import { hashedPodLinkName, isPrimaryNetwork } from '@virtwire/vm-model';
import type { Network, Vmi } from '../../model.ts';
import type { PodNetwork } from './state.ts';

const PRIMARY_POD_LINK = 'eth0';

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
  const given = vmi.status?.interfaces?.find((i) => i.name === network.name)?.podInterfaceName;
  return given === undefined || given === '' ? PRIMARY_POD_LINK : given;
}
