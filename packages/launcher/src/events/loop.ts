import type { Domain } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { ShownAgentFacts } from '../agent/store.ts';
import type { Clock } from '../config/clock.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { DomainEvent } from './domain-event.ts';
import { LIFECYCLE, LIFECYCLE_DETAIL, renderLifecycle } from './domain-event.ts';
import { newDomain } from './domain-document.ts';
import type { EventProcessor, ProcessedEvent } from './processor.ts';

/** Events that may wait; beyond it one that only asks for a fresh look at the domain is left out. */
export const QUEUE_LIMIT = 10;
/** Events of the kinds that say something no later look can tell; beyond it even these are dropped. */
export const SPECIAL_QUEUE_LIMIT = 1_000;
/** Agent updates that may wait before the poller has to. */
const AGENT_QUEUE_LIMIT = 10;
/** Pause before a state that could not be delivered is sent again. */
const RESEND_AFTER_MS = 1_000;

/** What the loop needs. */
export interface EventLoopDeps {
  readonly processor: EventProcessor;
  readonly metadata: MetadataCache;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called after each libvirt event was handled, in order. */
  readonly onHandled: (event: DomainEvent) => void;
  /** Called once for the first ADDED event, and once for the first event that marks the domain as deleted. */
  readonly onTold: (what: 'added' | 'deleted') => void;
}

/** The single consumer of everything that the handler has to learn. Events go out strictly in the order of arrival. */
export interface EventLoop {
  /** Queues what libvirt told. Never waits. */
  push(event: DomainEvent): void;
  /** Queues what the agent told; resolves when there is room again. */
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

/** Log line of an event's arrival. `@source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:528` */
export function describeArrival({ lifecycle, agent, job }: DomainEvent): string {
  if (lifecycle !== undefined) {
    const { event, detail } = lifecycle;
    return `DomainLifecycle event ${renderLifecycle(event, detail)} with event id ${event} reason ${detail} received`;
  }
  if (agent !== undefined) {
    return `GuestAgentLifecycle event state ${agent.state} with reason ${agent.reason} received`;
  }
  if (job !== undefined) {
    const text = `Job operation: ${String(job.get('operation'))}, succeeded: ${String(job.get('success') === true)}`;
    return `Domain Job Completed event received. ${text}`;
  }
  return 'Domain device event received';
}

/** Creates the loop of one VM. `@source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:440` */
export function createEventLoop(deps: EventLoopDeps, uid: string): EventLoop {
  const { metadata, log } = deps;
  const queue: DomainEvent[] = [];
  const agentQueue: ShownAgentFacts[] = [];
  const roomWaiters: (() => void)[] = [];
  const told = new Set<string>();
  let isReconnected = false;
  let resendAtMs: number | undefined;
  let shown: ShownAgentFacts = {};
  let cached: { domain: Domain; name: string } | undefined;
  let hasNews = false;
  let resolveWork: () => void = () => undefined;
  const wake = (): void => {
    hasNews = true;
    resolveWork();
  };

  function tell(processed: ProcessedEvent): void {
    const once = (what: 'added' | 'deleted'): void => {
      if (told.has(what)) return;
      told.add(what);
      deps.onTold(what);
    };
    if (processed.eventType === 'ADDED') once('added');
    else if (processed.domain.ObjectMeta.deletionTimestamp !== undefined) once('deleted');
  }

  async function handle(base: Domain, name: string, event?: DomainEvent): Promise<void> {
    const processed = await deps.processor.process(base, name, event, shown);
    cached = { domain: processed?.domain ?? cached?.domain ?? base, name };
    if (processed === undefined) return;
    resendAtMs = processed.isDelivered ? undefined : deps.clock.now() + RESEND_AFTER_MS;
    tell(processed);
  }

  function fresh(name: string): Domain {
    const { GuestPanicInfo, PanicCount } = cached?.domain.Status ?? {};
    const domain = newDomain(name, uid);
    return { ...domain, Status: { ...domain.Status, GuestPanicInfo, PanicCount } };
  }

  async function handleNext(): Promise<boolean> {
    const event = queue.shift();
    if (event !== undefined) {
      metadata.takeNotification();
      await handle(fresh(event.domainName), event.domainName, event);
      log.info(`Domain name event: ${cached?.domain.Spec.Name ?? ''}`);
      deps.onHandled(event);
      return true;
    }
    const update = agentQueue.shift();
    if (update !== undefined) {
      roomWaiters.shift()?.();
      metadata.takeNotification();
      shown = { ...shown, ...update };
      if (cached !== undefined) await handle(cached.domain, cached.name);
      return true;
    }
    return handleQuiet();
  }

  async function handleQuiet(): Promise<boolean> {
    if (isReconnected) {
      isReconnected = false;
      const text = 'Event callbacks re-registered, triggering immediate reconciliation.';
      log.info(`Libvirt reconnected, domain ${cached?.name ?? ''}. ${text}`);
      if (cached !== undefined) await handle(cached.domain, cached.name);
      return true;
    }
    if (metadata.takeNotification()) {
      if (cached === undefined) log.warn('Dropping metadata cache notification');
      else await handle(fresh(cached.name), cached.name);
      return true;
    }
    if (resendAtMs !== undefined && cached !== undefined && deps.clock.now() >= resendAtMs) {
      await handle(fresh(cached.name), cached.name);
      return true;
    }
    return false;
  }

  async function waitForWork(signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const stop = AbortSignal.any([signal, woken.signal]);
    const work = new Promise<void>((resolve) => {
      resolveWork = resolve;
      stop.addEventListener('abort', () => resolve(), { once: true });
    });
    const pause = resendAtMs === undefined ? work : deps.clock.sleep(resendAtMs - deps.clock.now(), stop);
    await Promise.race([work, pause]);
    woken.abort();
  }

  metadata.onNotify(wake);
  return {
    push(event) {
      log.info(describeArrival(event));
      const limit = isSpecial(event) ? SPECIAL_QUEUE_LIMIT : QUEUE_LIMIT;
      if (queue.length >= limit) {
        log.info('Libvirt event channel is full, dropping event.');
        return;
      }
      queue.push(event);
      wake();
    },
    async pushAgent(update) {
      agentQueue.push(update);
      wake();
      if (agentQueue.length > AGENT_QUEUE_LIMIT) await new Promise<void>((resolve) => roomWaiters.push(resolve));
    },
    pushReconnect() {
      isReconnected = true;
      wake();
    },
    async run(signal) {
      while (!signal.aborted) {
        hasNews = false;
        if (await handleNext()) continue;
        if (!hasNews) await waitForWork(signal);
      }
    },
  };
}
