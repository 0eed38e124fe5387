import { isGlobalUnicast } from '@virtwire/host';
import type { FamilyState, InterfaceState, NetworkAddress } from './state.ts';

/** Addresses of a link's family, in the kernel's order. */
export function addressesOf(family: FamilyState): readonly NetworkAddress[] {
  return family.address ?? [];
}

/** First address of a family that is valid beyond the link. */
export function firstGlobal(family: FamilyState): NetworkAddress | undefined {
  return addressesOf(family).find((a) => isGlobalUnicast(a.IP));
}

/** True if the link has a global address of either family. */
export function hasGlobal(link: InterfaceState): boolean {
  return firstGlobal(link.IPv4) !== undefined || firstGlobal(link.IPv6) !== undefined;
}

/** An address in the form `10.244.0.5/24`. */
export function cidrOf(address: NetworkAddress): string {
  return `${address.IP}/${address['prefix-length']}`;
}
