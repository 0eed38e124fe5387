import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { isNoDomain } from './libvirt-port.ts';

/** The domain of that name; undefined when libvirt has none. Other failures are passed on. */
export async function findDomain(
  libvirt: Pick<LibvirtPort, 'lookupDomainByName'>,
  name: string,
): Promise<DomainRef | undefined> {
  try {
    return await libvirt.lookupDomainByName(name);
  } catch (caught) {
    if (isNoDomain(caught)) return undefined;
    throw caught;
  }
}
