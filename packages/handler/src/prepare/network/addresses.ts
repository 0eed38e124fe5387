import { isGlobalUnicast } from '@virtwire/host';
import type { FamilyState, NetworkAddress } from './state.ts';

/** Addresses of a link's family, in the kernel's order. */
export function addressesOf(family: FamilyState): readonly NetworkAddress[] {
  return family.address ?? [];
}

/** First address of a family that is valid beyond the link. */
export function firstGlobal(family: FamilyState): NetworkAddress | undefined {
  return addressesOf(family).find((a) => isGlobalUnicast(a.IP));
}

/** An address in the form `10.244.0.5/24`. */
export function cidrOf(address: NetworkAddress): string {
  return `${address.IP}/${address['prefix-length']}`;
}
