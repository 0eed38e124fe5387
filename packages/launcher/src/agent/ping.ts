import type { Logger } from '@virtwire/telemetry';
import { splitDomainName } from '@virtwire/vm-model';
import type { Clock } from '../config/clock.ts';
import { findDomain } from '../domain/find-domain.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import { isLibvirtCode, LIBVIRT_ERROR } from '../domain/libvirt-port.ts';
import { isMigrating } from '../domain/migrating.ts';
import { isHealthyPause } from '../domain/state.ts';
import { textOf } from '../errors.ts';
import type { K8sEvent } from '../events/k8s-event.ts';
import type { MetadataCache } from '../metadata/cache.ts';

/** How long the answer to a probe waits for the event about it, which may have no way to the handler just now. */
const EVENT_LIMIT_MS = 1_000;

/** What a ping needs. */
export interface GuestPingDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getState' | 'agentCommand'>;
  readonly metadata: MetadataCache;
  readonly clock: Clock;
  readonly log: Logger;
  /** The VMI asks for silence: probes succeed without a question. */
  readonly areProbesPaused: () => boolean;
  readonly sendK8sEvent: (event: K8sEvent) => Promise<void>;
}

/** A domain that cannot be looked up is not excused; one whose state cannot be read may just be ending. */
async function isPausedButHealthy(libvirt: GuestPingDeps['libvirt'], domainName: string): Promise<boolean> {
  try {
    const domain = await findDomain(libvirt, domainName);
    if (domain === undefined) return true;
    return await libvirt.getState(domain).then(
      ({ state, reason }) => isHealthyPause(state, reason),
      () => true,
    );
  } catch {
    return false;
  }
}

/** Says of an agent that it could not be asked. A paused domain is `operation invalid` for libvirt, which KubeVirt overlooks. */
function isSilence(caught: unknown): boolean {
  const { agentUnresponsive, operationInvalid, noDomain } = LIBVIRT_ERROR;
  return [agentUnresponsive, operationInvalid, noDomain].some((code) => isLibvirtCode(caught, code));
}

async function isExcused(deps: GuestPingDeps, domainName: string, caught: unknown): Promise<boolean> {
  if (!isSilence(caught)) return false;
  if (isMigrating(deps.metadata)) return true;
  return isPausedButHealthy(deps.libvirt, domainName);
}

/**
 * Asks the guest agent whether it is there, for a probe of the pod.
 *
 * @throws the agent's failure, unless the VM rests for a good reason; then a Kubernetes event was sent as well.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GuestPing
 */
export async function pingGuest(deps: GuestPingDeps, domainName: string): Promise<void> {
  if (deps.areProbesPaused()) return;
  try {
    const domain = await deps.libvirt.lookupDomainByName(domainName);
    await deps.libvirt.agentCommand(domain, '{"execute":"guest-ping"}');
  } catch (caught) {
    if (await isExcused(deps, domainName, caught)) {
      const text = `GuestPing for ${domainName} failed with ${textOf(caught)}`;
      deps.log.info(`${text} but the VM is healthy; suppressing probe error`);
      return;
    }
    deps.log.warn({ reason: caught }, 'GuestAgentPing probe failed');
    const { name } = splitDomainName(domainName);
    const message = `GuestAgentPing probe failed for VMI ${name}`;
    const sending = deps.sendK8sEvent({ type: 'Warning', reason: 'GuestAgentPingFailed', message });
    await Promise.race([sending, deps.clock.sleep(EVENT_LIMIT_MS)]);
    throw caught;
  }
}
