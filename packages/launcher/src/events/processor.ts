import type { Domain, DomainSpec } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { ShownAgentFacts } from '../agent/store.ts';
import type { Clock } from '../config/clock.ts';
import type { DomainRef, DomainStateReason, LibvirtPort } from '../domain/libvirt-port.ts';
import { isLibvirtCode, isNoDomain, LIBVIRT_ERROR } from '../domain/libvirt-port.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { ObservedDomain } from './decide-event.ts';
import { applyObserved, decideEventType, isPausedForIoError, startsTargetMonitor } from './decide-event.ts';
import type { DomainEvent } from './domain-event.ts';
import { LIFECYCLE, LIFECYCLE_DETAIL } from './domain-event.ts';
import { withAgentFacts } from './domain-document.ts';
import { readLastPanic, renderPanicMessage } from './guest-panic.ts';
import { decideIoErrorEvents } from './io-errors.ts';
import type { K8sEvent, VmiReference } from './k8s-event.ts';
import { k8sEventObject } from './k8s-event.ts';
import type { NotifyPort } from './notify-port.ts';

/** What handling an event needs. */
export interface EventProcessorDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getState' | 'getXml' | 'getDiskErrors'>;
  readonly notify: NotifyPort;
  readonly metadata: MetadataCache;
  readonly clock: Clock;
  readonly log: Logger;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly renderDomain: (domain: Domain) => string;
  /** An incoming migration may have ended: watches it in the background and stamps its end. */
  readonly startTargetMonitor: (domainName: string) => void;
}

/** What came of an event. */
export interface ProcessedEvent {
  readonly domain: Domain;
  readonly eventType: 'ADDED' | 'MODIFIED';
  /** False when the message is lost until the next one, because the handler could not be reached. */
  readonly isDelivered: boolean;
}

/** Handles one event at a time. */
export interface EventProcessor {
  /**
   * Asks libvirt about the domain and sends what it says.
   *
   * @param base the document to start from: a fresh one for a libvirt event, the last one otherwise.
   * @returns undefined when libvirt could not say anything certain, in which case nothing was sent.
   */
  process(
    base: Domain,
    domainName: string,
    event: DomainEvent | undefined,
    shown: ShownAgentFacts,
  ): Promise<ProcessedEvent | undefined>;
}

function panicOf(base: Domain, logFile: string): { status: Domain['Status']; event: K8sEvent } {
  const found = readLastPanic(logFile);
  return {
    status: {
      ...base.Status,
      GuestPanicInfo: found ?? { Type: 'unknown' },
      PanicCount: (base.Status.PanicCount ?? 0) + 1,
    },
    event: { type: 'Warning', reason: 'GuestPanicked', message: renderPanicMessage(found) },
  };
}

/** Creates the handler of events of one VM. `@source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:195` */
export function createEventProcessor(deps: EventProcessorDeps, vmi: VmiReference, qemuLogFile: string): EventProcessor {
  const { libvirt, metadata, log } = deps;
  let last = { status: '', reason: '' };

  async function sendK8s(event: K8sEvent): Promise<void> {
    const failure = await deps.notify.sendK8sEvent(JSON.stringify(k8sEventObject(vmi, event)));
    if (failure !== undefined) log.error(failure.error, 'Could not send k8s event');
  }

  async function handlePanic(base: Domain, event: DomainEvent | undefined): Promise<Domain> {
    if (event?.lifecycle?.event !== LIFECYCLE.crashed || metadata.guestPanicHandled.load() === true) return base;
    const { status, event: k8sEvent } = panicOf(base, qemuLogFile);
    if (event.lifecycle.detail === LIFECYCLE_DETAIL.crashedPanicked) metadata.guestPanicHandled.set(true);
    await sendK8s(k8sEvent);
    return { ...base, Status: status };
  }

  async function lookup(domainName: string): Promise<DomainRef | undefined> {
    try {
      return await libvirt.lookupDomainByName(domainName);
    } catch (caught) {
      if (isNoDomain(caught)) return undefined;
      throw caught;
    }
  }

  async function stateOf(domain: DomainRef): Promise<DomainStateReason | undefined> {
    try {
      return await libvirt.getState(domain);
    } catch (caught) {
      if (isNoDomain(caught)) return undefined;
      throw caught;
    }
  }

  async function specOf(domain: DomainRef): Promise<DomainSpec | undefined> {
    let xml: string;
    try {
      xml = await libvirt.getXml(domain, 0);
    } catch (caught) {
      if (isNoDomain(caught) || isLibvirtCode(caught, LIBVIRT_ERROR.operationInvalid)) return undefined;
      throw caught;
    }
    return deps.parseSpec(xml);
  }

  async function observe(ref: DomainRef | undefined): Promise<ObservedDomain> {
    if (ref === undefined) return { state: undefined, spec: undefined };
    return { state: await stateOf(ref), spec: await specOf(ref) };
  }

  function withMetadata(domain: Domain, isRead: boolean): Domain {
    if (!isRead) return domain;
    return { ...domain, Spec: { ...domain.Spec, Metadata: { KubeVirt: metadata.snapshot() } } };
  }

  function logState({ Status: { Status = '', Reason = '' } }: Domain): void {
    const line = `kubevirt domain status: ${Status}(${last.status}) reason: ${Reason}(${last.reason})`;
    const isChanged = Status !== last.status || Reason !== last.reason;
    if (isChanged) log.info(line);
    else log.debug(line);
    last = { status: Status, reason: Reason };
  }

  async function reportIoErrors(ref: DomainRef | undefined, observed: ObservedDomain): Promise<void> {
    if (ref === undefined || !isPausedForIoError(observed.state)) return;
    try {
      const errors = await libvirt.getDiskErrors(ref);
      for (const event of decideIoErrorEvents(errors, observed.spec)) await sendK8s(event);
    } catch (caught) {
      log.error({ reason: caught }, 'Could not get disk errors');
    }
  }

  async function send(domain: Domain, eventType: 'ADDED' | 'MODIFIED'): Promise<boolean> {
    const failure = await deps.notify.sendDomainEvent(deps.renderDomain(domain), eventType);
    if (failure !== undefined) log.error(failure.error, 'Could not send domain notify event.');
    return failure === undefined || failure.isRefused;
  }

  return {
    async process(base, domainName, event, shown) {
      let domain = await handlePanic(base, event);
      let ref: DomainRef | undefined;
      let observed: ObservedDomain;
      try {
        ref = await lookup(domainName);
        observed = await observe(ref);
      } catch (caught) {
        log.error({ reason: caught }, 'Could not fetch the Domain.');
        return undefined;
      }
      domain = applyObserved(domain, observed, event, metadata.uid.load(), deps.clock.now());
      domain = withMetadata(domain, observed.spec !== undefined);
      logState(domain);
      await reportIoErrors(ref, observed);
      if (startsTargetMonitor(event)) deps.startTargetMonitor(domainName);
      domain = { ...domain, Status: withAgentFacts(domain.Status, shown) };
      const eventType = decideEventType(event);
      return { domain, eventType, isDelivered: await send(domain, eventType) };
    },
  };
}
