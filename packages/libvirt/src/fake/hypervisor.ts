import type { DomainEventKind } from '../domain-events.ts';
import { DomainEventDefinedDetailType, DomainEventType, ErrorDomain, ErrorNumber } from '../gen/constants.gen.ts';
import type { DomainRef } from '../gen/types.gen.ts';
import { FakeDomain } from './domain.ts';
import { daemonError, invalidState, noDomainByName, noDomainByUuid } from './errors.ts';
import type { GuestBehaviour } from './guest.ts';
import { parseXml } from './xml.ts';

/** Sends a domain event to all who registered for it. */
export type EmitEvent = (kind: DomainEventKind, domain: FakeDomain, fields: Readonly<Record<string, unknown>>) => void;

/** Where events go. */
export interface EventSink {
  readonly emit: EmitEvent;
  readonly emitMonitor: (domain: FakeDomain, event: string) => void;
}

/** What the fake host is. */
export interface HostFacts {
  readonly hostname: string;
  readonly libvirtVersion: bigint;
  readonly hypervisorVersion: bigint;
  readonly cpus: number;
  readonly memoryKiB: bigint;
  readonly capabilities: string;
  readonly domainCapabilities: string;
}

/** The domains of a fake daemon; survives its crashes, as guests do. */
export class FakeHypervisor {
  readonly facts: HostFacts;
  readonly #events: EventSink;
  readonly #defaultBehaviour: GuestBehaviour;
  readonly #domains = new Map<string, FakeDomain>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #lastId = 0;

  constructor(facts: HostFacts, behaviour: GuestBehaviour, events: EventSink) {
    this.facts = facts;
    this.#defaultBehaviour = behaviour;
    this.#events = events;
  }

  /** All domains in the order of their definition. */
  get domains(): readonly FakeDomain[] {
    return [...this.#domains.values()];
  }

  /** Finds by name. */
  byName(name: string): FakeDomain {
    const found = this.domains.find((domain) => domain.name === name);
    if (found === undefined) throw noDomainByName(name);
    return found;
  }

  /** Finds by uuid, as look-ups do. */
  byUuid(uuid: string): FakeDomain {
    const found = this.#domains.get(uuid);
    if (found === undefined) throw noDomainByUuid(uuid);
    return found;
  }

  /** Finds the domain of a handle: by its uuid alone. */
  byRef(ref: DomainRef): FakeDomain {
    const found = this.#domains.get(ref.uuid);
    if (found === undefined) throw noDomainByUuid(ref.uuid, ref.name);
    return found;
  }

  /** Defines a domain, or changes the definition of one with the same uuid and name. */
  define(xml: string): FakeDomain {
    const made = this.#make(xml, true);
    const known = this.#domains.get(made.uuid);
    if (known !== undefined) {
      known.definition = made.definition;
      known.isPersistent = true;
    } else {
      this.#domains.set(made.uuid, made);
    }
    const domain = known ?? made;
    const detail = known === undefined ? DomainEventDefinedDetailType.ADDED : DomainEventDefinedDetailType.UPDATED;
    this.#events.emit('lifecycle', domain, { event: DomainEventType.DEFINED, detail });
    return domain;
  }

  /** Starts a transient domain. */
  createTransient(xml: string, isPaused: boolean): FakeDomain {
    const domain = this.#make(xml, false);
    if (this.#domains.get(domain.uuid)?.isActive === true)
      throw invalidState(`domain '${domain.name}' is already active`);
    this.#domains.set(domain.uuid, domain);
    domain.start(isPaused);
    return domain;
  }

  /** Lever: a domain arrives by migration and is kept, as with PERSIST_DEST. */
  receive(xml: string): FakeDomain {
    const domain = this.#make(xml, true);
    if (this.#domains.has(domain.uuid)) throw invalidState(`domain '${domain.name}' is here already`);
    this.#domains.set(domain.uuid, domain);
    domain.arrive();
    this.#events.emit('lifecycle', domain, {
      event: DomainEventType.DEFINED,
      detail: DomainEventDefinedDetailType.ADDED,
    });
    return domain;
  }

  /** Forgets a definition. A running domain goes on as a transient one. */
  undefine(domain: FakeDomain): void {
    if (!domain.isPersistent) throw invalidState('cannot undefine transient domain');
    domain.isPersistent = false;
    if (!domain.isActive) this.#domains.delete(domain.uuid);
    this.#events.emit('lifecycle', domain, { event: DomainEventType.UNDEFINED, detail: 0 });
  }

  /** Ends all timers. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #make(xml: string, isPersistent: boolean): FakeDomain {
    const host = {
      ...this.#events,
      nextId: () => ++this.#lastId,
      schedule: (delayMs: number, action: () => void) => this.#schedule(delayMs, action),
      forget: (domain: FakeDomain) => void this.#domains.delete(domain.uuid),
    };
    const made = new FakeDomain(host, parseXml(xml), isPersistent, this.#defaultBehaviour);
    const clash = this.domains.find((domain) => domain.name === made.name && domain.uuid !== made.uuid);
    if (clash !== undefined) {
      const text = `operation failed: domain '${clash.name}' already exists with uuid ${clash.uuid}`;
      throw daemonError(ErrorNumber.OPERATION_FAILED, ErrorDomain.DOMAIN, text);
    }
    return made;
  }

  #schedule(delayMs: number, action: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, delayMs);
    this.#timers.add(timer);
  }
}
