import type { Clock } from '../config/clock.ts';
import { findDomain } from '../domain/find-domain.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import { isUnanswered } from '../domain/libvirt-port.ts';
import { DOMAIN_STATE } from '../domain/state.ts';

/** libvirt's number of the reason why a domain is off that went to another node. */
const MIGRATED = 4;
/** A daemon that died is back within seconds. One that is not can tell nothing of its domain, to no handler. */
const BACK_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 500;

/** What finding out needs. */
export interface LostResultDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getState'>;
  readonly clock: Clock;
}

/**
 * Whether a guest has left although libvirt could not say so any more when it was asked to migrate it: as soon as libvirt
 * is back it knows, since it notes the end of a migration before it answers.
 */
export async function hasLeft({ libvirt, clock }: LostResultDeps, name: string): Promise<boolean> {
  const giveUpAtMs = clock.now() + BACK_LIMIT_MS;
  for (;;) {
    try {
      const domain = await findDomain(libvirt, name);
      if (domain === undefined) return false;
      const { state, reason } = await libvirt.getState(domain);
      return state === DOMAIN_STATE.shutoff && reason === MIGRATED;
    } catch (caught) {
      if (!isUnanswered(caught) || clock.now() >= giveUpAtMs) return false;
      await clock.sleep(LOOK_EVERY_MS);
    }
  }
}
