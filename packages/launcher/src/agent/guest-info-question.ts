import type { LibvirtPort } from '../domain/libvirt-port.ts';
import { isLibvirtCode, LIBVIRT_ERROR } from '../domain/libvirt-port.ts';
import { GUEST_INFO, parseGuestInfoParams } from './parse-guest-info.ts';
import type { AgentFacts } from './types.ts';

/** libvirt's guest info call for some kinds of facts, asked again and again. */
export interface GuestInfoQuestion {
  /** @throws what libvirt says when the agent tells nothing of what is asked for. */
  ask(domainName: string): Promise<AgentFacts>;
}

/**
 * Creates the question.
 *
 * libvirt tells nothing at all when the agent refuses one of the kinds, because it is too old or its guest forbids the
 * command. The kinds are asked for one by one then, and those that were refused are left out from then on.
 *
 * @param types bits of `GUEST_INFO`.
 */
export function createGuestInfoQuestion(
  libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'guestInfo'>,
  types: number,
): GuestInfoQuestion {
  let wanted = types;
  return {
    async ask(domainName) {
      const domain = await libvirt.lookupDomainByName(domainName);
      const askFor = async (some: number): Promise<AgentFacts> =>
        parseGuestInfoParams(await libvirt.guestInfo(domain, some), some);
      try {
        return await askFor(wanted);
      } catch (caught) {
        const kinds = Object.values(GUEST_INFO).filter((kind) => (wanted & kind) !== 0);
        if (kinds.length === 1 || !isLibvirtCode(caught, LIBVIRT_ERROR.internal)) throw caught;
        let facts: AgentFacts | undefined;
        let told = 0;
        for (const kind of kinds) {
          try {
            facts = { ...facts, ...(await askFor(kind)) };
            told |= kind;
          } catch (refused) {
            if (!isLibvirtCode(refused, LIBVIRT_ERROR.internal)) throw refused;
          }
        }
        if (facts === undefined) throw caught;
        wanted = told;
        return facts;
      }
    },
  };
}
