import type { Domain } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { ShownAgentFacts } from '../agent/store.ts';
import type { Clock } from '../config/clock.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { createAgentEventLimit } from './agent-event-limit.ts';
import type { DomainEvent } from './domain-event.ts';
import { LIFECYCLE, LIFECYCLE_DETAIL, renderLifecycle } from './domain-event.ts';
import { newDomain } from './domain-document.ts';
import type { EventProcessor } from './processor.ts';

/** Events that may wait; beyond it one that only asks for a fresh look at the domain is left out. */
export const QUEUE_LIMIT = 10;
/** Events of the kinds that say something no later look can tell; beyond it even these are dropped. */
const SPECIAL_QUEUE_LIMIT = 1_000;
/** Agent updates that may wait before the poller has to. */
export const AGENT_QUEUE_LIMIT = 10;
/** Pause before a state that could not be delivered is sent again. */
const RESEND_AFTER_MS = 1_000;

/** What the loop needs. */
export interface EventLoopDeps {
  readonly processor: EventProcessor;
  readonly metadata: MetadataCache;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with each libvirt event as it arrives, however long the handler is waited for. */
  readonly onArrived?: (event: DomainEvent) => void;
  /** Called after each libvirt event was handled, in order. */
  readonly onHandled: (event: DomainEvent) => void;
  /** Called when the connection to libvirt is back, before the domain is looked at: some events were missed. */
  readonly onReconnected?: (domainName: string) => Promise<void>;
  /** Called once for the first ADDED event, and once for the first event that marks the domain as deleted. */
  readonly onTold: (what: 'added' | 'deleted') => void;
}

/** The single consumer of everything that the handler has to learn. Events go out strictly in the order of arrival. */
export interface EventLoop {
  /** Queues what libvirt told; of an agent that comes and goes too often, what it did last. Never waits. */
  push(event: DomainEvent): void;
  /** Queues what the agent told, as soon as there is room; resolves then. */
  pushAgent(shown: ShownAgentFacts): Promise<void>;
  /** The connection to libvirt is back: the last known domain is looked at and sent again. */
  pushReconnect(): void;
  /** Handles events until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

function isSpecial({ lifecycle, agent, job }: DomainEvent): boolean {
  if (agent !== undefined || job !== undefined) return true;
  if (lifecycle === undefined) return false;
  const { event, detail } = lifecycle;
  return (
    event === LIFECYCLE.crashed ||
    event === LIFECYCLE.undefined ||
    event === LIFECYCLE.suspended ||
    event === LIFECYCLE.stopped ||
    (event === LIFECYCLE.defined && detail === LIFECYCLE_DETAIL.definedAdded) ||
    (event === LIFECYCLE.started && detail === LIFECYCLE_DETAIL.startedMigrated) ||
    (event === LIFECYCLE.resumed && detail === LIFECYCLE_DETAIL.resumedMigrated)
  );
}

const DEVICE_TEXT = {
  added: 'Domain Device Added event received',
  removed: 'Domain Device Removed event received',
  memoryResized: 'Domain Memory Device size-change event received',
} as const;

/** Log line of an event's arrival. `@source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:528` */
function describeArrival({ lifecycle, device, agent, job }: DomainEvent): string {
  if (lifecycle !== undefined) {
    const { event, detail } = lifecycle;
    return `DomainLifecycle event ${renderLifecycle(event, detail)} with event id ${event} reason ${detail} received`;
  }
  if (agent !== undefined) {
    return `GuestAgentLifecycle event state ${agent.state} with reason ${agent.reason} received`;
  }
  if (job !== undefined) {
    const text = `Job operation: ${String(job.get('operation'))}, succeeded: ${String(job.get('success') === true)}`;
    return `Domain Job Completed event type ${String(job.get('type') ?? 0)} received. ${text}`;
  }
  return device === undefined ? 'Domain event received' : DEVICE_TEXT[device];
}

/** Creates the loop of one VM. */
export function createEventLoop(deps: EventLoopDeps, uid: string): EventLoop {
  return new DomainEventLoop(deps, uid);
}

/** @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:440 */
class DomainEventLoop implements EventLoop {
  readonly #deps: EventLoopDeps;
  readonly #uid: string;
  readonly #limitAgent: (event: DomainEvent) => void;
  readonly #queue: DomainEvent[] = [];
  readonly #agentQueue: ShownAgentFacts[] = [];
  readonly #roomWaiters: (() => void)[] = [];
  readonly #told = new Set<string>();
  #isReconnected = false;
  #resendAtMs: number | undefined;
  #shown: ShownAgentFacts = {};
  #cached: { readonly domain: Domain; readonly name: string } | undefined;
  #hasNews = false;
  #resolveWork: () => void = () => undefined;

  constructor(deps: EventLoopDeps, uid: string) {
    this.#deps = deps;
    this.#uid = uid;
    const { clock, log } = deps;
    this.#limitAgent = createAgentEventLimit({ clock, log, deliver: (event) => this.#enqueue(event) });
    deps.metadata.onNotify(() => this.#wake());
  }

  push(event: DomainEvent): void {
    this.#deps.onArrived?.(event);
    this.#limitAgent(event);
  }

  #enqueue(event: DomainEvent): void {
    this.#deps.log.info(describeArrival(event));
    if (this.#queue.length >= (isSpecial(event) ? SPECIAL_QUEUE_LIMIT : QUEUE_LIMIT)) {
      this.#deps.log.info('Libvirt event channel is full, dropping event.');
      return;
    }
    this.#queue.push(event);
    this.#wake();
  }

  async pushAgent(update: ShownAgentFacts): Promise<void> {
    while (this.#agentQueue.length >= AGENT_QUEUE_LIMIT) {
      await new Promise<void>((resolve) => this.#roomWaiters.push(resolve));
    }
    this.#agentQueue.push(update);
    this.#wake();
  }

  pushReconnect(): void {
    this.#isReconnected = true;
    this.#wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#hasNews = false;
      if (await this.#handleNext()) continue;
      await this.#waitForWork(signal);
    }
  }

  #wake(): void {
    this.#hasNews = true;
    this.#resolveWork();
  }

  async #waitForWork(signal: AbortSignal): Promise<void> {
    if (this.#hasNews) return;
    const woken = new AbortController();
    const stop = AbortSignal.any([signal, woken.signal]);
    const { clock } = this.#deps;
    const work = new Promise<void>((resolve) => {
      this.#resolveWork = resolve;
      stop.addEventListener('abort', () => resolve(), { once: true });
    });
    const pause = this.#resendAtMs === undefined ? work : clock.sleep(this.#resendAtMs - clock.now(), stop);
    await Promise.race([work, pause]);
    woken.abort();
  }

  async #handleNext(): Promise<boolean> {
    const event = this.#queue.shift();
    if (event !== undefined) {
      await this.#handleEvent(event);
      return true;
    }
    const update = this.#agentQueue.shift();
    if (update !== undefined) {
      await this.#handleAgent(update);
      return true;
    }
    return this.#handleQuiet();
  }

  async #handleEvent(event: DomainEvent): Promise<void> {
    this.#deps.metadata.takeNotification();
    await this.#handle(this.#fresh(event.domainName), event.domainName, event);
    this.#deps.log.info(`Domain name event: ${this.#cached?.domain.Spec.Name ?? ''}`);
    this.#deps.onHandled(event);
  }

  async #handleAgent(update: ShownAgentFacts): Promise<void> {
    this.#roomWaiters.shift()?.();
    this.#deps.metadata.takeNotification();
    this.#shown = { ...this.#shown, ...update };
    if (this.#cached !== undefined) await this.#handle(this.#cached.domain, this.#cached.name);
  }

  /** What is due when nothing waits in a queue. */
  async #handleQuiet(): Promise<boolean> {
    const { metadata, log, clock } = this.#deps;
    const cached = this.#cached;
    if (this.#isReconnected) {
      this.#isReconnected = false;
      const text = 'Event callbacks re-registered, triggering immediate reconciliation.';
      log.info(`Libvirt reconnected, domain ${cached?.name ?? ''}. ${text}`);
      if (cached !== undefined) {
        await this.#deps.onReconnected?.(cached.name);
        await this.#handle(cached.domain, cached.name);
      }
      return true;
    }
    if (metadata.takeNotification()) {
      if (cached === undefined) log.warn('Dropping metadata cache notification');
      else await this.#handle(this.#fresh(cached.name), cached.name);
      return true;
    }
    if (this.#resendAtMs === undefined || cached === undefined || clock.now() < this.#resendAtMs) return false;
    await this.#handle(this.#fresh(cached.name), cached.name);
    return true;
  }

  async #handle(base: Domain, name: string, event?: DomainEvent): Promise<void> {
    const processed = await this.#deps.processor.process(base, name, event, this.#shown);
    this.#cached = { domain: processed?.domain ?? this.#cached?.domain ?? base, name };
    const laterMs = this.#deps.clock.now() + RESEND_AFTER_MS;
    if (processed === undefined) {
      // Without libvirt's word there is nothing to send; a state that is owed stays owed, but not at once.
      if (this.#resendAtMs !== undefined) this.#resendAtMs = laterMs;
      return;
    }
    this.#resendAtMs = processed.isDelivered ? undefined : laterMs;
    if (processed.eventType === 'ADDED') this.#tellOnce('added');
    else if (processed.domain.ObjectMeta.deletionTimestamp !== undefined) this.#tellOnce('deleted');
  }

  #tellOnce(what: 'added' | 'deleted'): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    this.#deps.onTold(what);
  }

  #fresh(name: string): Domain {
    const { GuestPanicInfo, PanicCount } = this.#cached?.domain.Status ?? {};
    const domain = newDomain(name, this.#uid);
    return { ...domain, Status: { ...domain.Status, GuestPanicInfo, PanicCount } };
  }
}
