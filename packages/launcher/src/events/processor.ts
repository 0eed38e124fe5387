import type { Domain, DomainSpec } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { ShownAgentFacts } from '../agent/store.ts';
import type { Clock } from '../config/clock.ts';
import { findDomain } from '../domain/find-domain.ts';
import type { DomainRef, DomainStateReason, LibvirtPort, Params } from '../domain/libvirt-port.ts';
import { isLibvirtCode, isNoDomain, LIBVIRT_ERROR } from '../domain/libvirt-port.ts';
import { DOMAIN_STATE } from '../domain/state.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { ObservedDomain } from './decide-event.ts';
import { applyObserved, decideEventType, endsBackup, isPausedForIoError, startsTargetMonitor } from './decide-event.ts';
import type { DomainEvent } from './domain-event.ts';
import { LIFECYCLE, LIFECYCLE_DETAIL } from './domain-event.ts';
import { withAgentFacts } from './domain-document.ts';
import { readLastPanic, renderPanicMessage } from './guest-panic.ts';
import { decideIoErrorEvents } from './io-errors.ts';
import type { K8sEvent, VmiReference } from './k8s-event.ts';
import { renderK8sEvent } from './k8s-event.ts';
import type { NotifyFailure, NotifyPort } from './notify-port.ts';

/** What handling an event needs. */
export interface EventProcessorDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getState' | 'getXml' | 'getDiskErrors'>;
  readonly notify: NotifyPort;
  readonly metadata: MetadataCache;
  readonly clock: Clock;
  readonly log: Logger;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly renderDomain: (domain: Domain) => string;
  /** The VM has ended: resolves, after some seconds at most, when it is noted what became of all that it cut off. */
  readonly settleWork: () => Promise<void>;
  /** A backup has ended: notes how. */
  readonly completeBackup: (domain: DomainRef | undefined, job: Params) => Promise<void>;
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

/** Creates the handler of events of one VM. */
export function createEventProcessor(deps: EventProcessorDeps, vmi: VmiReference, qemuLogFile: string): EventProcessor {
  return new DomainEventProcessor(deps, vmi, qemuLogFile);
}

/** @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:195 */
class DomainEventProcessor implements EventProcessor {
  readonly #deps: EventProcessorDeps;
  readonly #vmi: VmiReference;
  readonly #qemuLogFile: string;
  #last = { status: '', reason: '' };
  #isHandlerAway = false;

  constructor(deps: EventProcessorDeps, vmi: VmiReference, qemuLogFile: string) {
    this.#deps = deps;
    this.#vmi = vmi;
    this.#qemuLogFile = qemuLogFile;
  }

  async process(
    base: Domain,
    domainName: string,
    event: DomainEvent | undefined,
    shown: ShownAgentFacts,
  ): Promise<ProcessedEvent | undefined> {
    const { libvirt, metadata, log, clock } = this.#deps;
    const start = await this.#handlePanic(base, event);
    let ref: DomainRef | undefined;
    let observed: ObservedDomain;
    try {
      ref = await findDomain(libvirt, domainName);
      observed = await this.#observe(ref);
    } catch (caught) {
      log.error({ reason: caught }, 'Could not fetch the Domain.');
      return undefined;
    }
    // Whoever hears of the end may delete the domain at once, and nothing more could be told of it then.
    if (observed.state?.state === DOMAIN_STATE.shutoff) await this.#deps.settleWork();
    const seen = applyObserved(start, observed, event, metadata.uid.load(), clock.now());
    this.#logState(seen);
    await this.#reportIoErrors(ref, observed);
    if (endsBackup(event)) await this.#deps.completeBackup(ref, event.job);
    if (startsTargetMonitor(event)) this.#deps.startTargetMonitor(domainName);
    const domain = {
      ...seen,
      Spec: observed.spec === undefined ? seen.Spec : { ...seen.Spec, Metadata: { KubeVirt: metadata.snapshot() } },
      Status: withAgentFacts(seen.Status, shown),
    };
    const eventType = decideEventType(event);
    return { domain, eventType, isDelivered: await this.#send(domain, eventType) };
  }

  async #observe(ref: DomainRef | undefined): Promise<ObservedDomain> {
    if (ref === undefined) return { state: undefined, spec: undefined };
    return { state: await this.#stateOf(ref), spec: await this.#specOf(ref) };
  }

  async #stateOf(domain: DomainRef): Promise<DomainStateReason | undefined> {
    try {
      return await this.#deps.libvirt.getState(domain);
    } catch (caught) {
      if (isNoDomain(caught)) return undefined;
      throw caught;
    }
  }

  async #specOf(domain: DomainRef): Promise<DomainSpec | undefined> {
    let xml: string;
    try {
      xml = await this.#deps.libvirt.getXml(domain, 0);
    } catch (caught) {
      if (isNoDomain(caught) || isLibvirtCode(caught, LIBVIRT_ERROR.operationInvalid)) return undefined;
      throw caught;
    }
    return this.#deps.parseSpec(xml);
  }

  async #handlePanic(base: Domain, event: DomainEvent | undefined): Promise<Domain> {
    const { guestPanicHandled } = this.#deps.metadata;
    if (event?.lifecycle?.event !== LIFECYCLE.crashed || guestPanicHandled.load() === true) return base;
    const { status, event: k8sEvent } = panicOf(base, this.#qemuLogFile);
    if (event.lifecycle.detail === LIFECYCLE_DETAIL.crashedPanicked) guestPanicHandled.set(true);
    await this.#sendK8s(k8sEvent);
    return { ...base, Status: status };
  }

  #logState({ Status: { Status = '', Reason = '' } }: Domain): void {
    const { status, reason } = this.#last;
    const line = `kubevirt domain status: ${Status}(${status}) reason: ${Reason}(${reason})`;
    if (Status !== status || Reason !== reason) this.#deps.log.info(line);
    else this.#deps.log.debug(line);
    this.#last = { status: Status, reason: Reason };
  }

  async #reportIoErrors(ref: DomainRef | undefined, observed: ObservedDomain): Promise<void> {
    if (ref === undefined || !isPausedForIoError(observed.state)) return;
    try {
      const errors = await this.#deps.libvirt.getDiskErrors(ref);
      for (const event of decideIoErrorEvents(errors, observed.spec)) await this.#sendK8s(event);
    } catch (caught) {
      this.#deps.log.error({ reason: caught }, 'Could not get disk errors');
    }
  }

  async #sendK8s(event: K8sEvent): Promise<void> {
    const failure = await this.#deps.notify.sendK8sEvent(renderK8sEvent(this.#vmi, event));
    if (failure !== undefined) this.#deps.log.error({ reason: failure.error }, 'Could not send k8s event');
  }

  async #send(domain: Domain, eventType: 'ADDED' | 'MODIFIED'): Promise<boolean> {
    const failure = await this.#deps.notify.sendDomainEvent(this.#deps.renderDomain(domain), eventType);
    this.#logDelivery(failure);
    return failure === undefined || failure.isRefused;
  }

  /** FM-11.5: a handler may be away for hours, and each state is tried again and again. */
  #logDelivery(failure: NotifyFailure | undefined): void {
    const { log } = this.#deps;
    const isAway = failure !== undefined && !failure.isRefused;
    if (failure !== undefined && !(isAway && this.#isHandlerAway)) {
      log.error({ reason: failure.error }, 'Could not send domain notify event.');
    }
    if (!isAway && this.#isHandlerAway) log.info('Domain notify events get through again.');
    this.#isHandlerAway = isAway;
  }
}
