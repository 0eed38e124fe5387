import { Domain } from './domain.ts';
import { DOMAIN_EVENTS } from './domain-events.ts';
import type { DomainEvent, DomainEventKind, MonitorEvent, MonitorEventFilter } from './domain-events.ts';
import type { Caller } from './caller.ts';
import { ConnectDomainQemuMonitorEventRegisterFlags as MonitorFlags } from './gen/constants.gen.ts';
import type { DomainRef } from './gen/types.gen.ts';
import type { Procedure } from './procedures.ts';

const MAX_EARLY_MESSAGES = 1_000;

/** Sends a registration call on the channel of the moment, with a hook that runs in the packet loop. */
export type RegisterCall = (procedure: string, args: unknown, onReply: (ret: unknown) => void) => Promise<unknown>;

interface Registration {
  readonly procedure: string;
  readonly args: unknown;
  readonly deliver: (message: unknown) => void;
  callbackId: number | undefined;
}

/** A message of either form: fields beside the callback id, or nested in `msg`. */
interface CallbackMessage {
  readonly callbackID: number;
  readonly msg?: { readonly dom: DomainRef };
  readonly dom?: DomainRef;
}

/** Deregistration of a subscription that was closed: what to call, if the daemon knows it. */
export interface Deregistration {
  readonly procedure: 'CONNECT_DOMAIN_EVENT_CALLBACK_DEREGISTER_ANY' | 'QEMU_CONNECT_DOMAIN_MONITOR_EVENT_DEREGISTER';
  readonly callbackID: number;
}

/**
 * The subscriptions of a connection, and the dispatch by callback id. The ids belong to one daemon and one socket, so
 * after a reconnection all are registered anew.
 */
export class EventRegistry {
  readonly #caller: Caller;
  readonly #registrations = new Set<Registration>();
  readonly #byCallbackId = new Map<string, Registration>();
  #early: { readonly key: string; readonly message: unknown }[] = [];
  #pending = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Number of subscriptions. */
  get size(): number {
    return this.#registrations.size;
  }

  /** Makes a registration for a domain event; `register` then tells the daemon. */
  addDomainEvent<K extends DomainEventKind>(
    kind: K,
    listener: (event: DomainEvent<K>) => void,
    domain: Domain | undefined,
  ): Registration {
    return this.#add('CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY', {
      args: { eventID: DOMAIN_EVENTS[kind][0], dom: domain?.ref ?? null },
      deliver: (message) => {
        const { msg, ...outer } = message as CallbackMessage;
        const flat: Record<string, unknown> = { kind, ...outer, ...msg };
        const dom = msg?.dom ?? outer.dom;
        if (dom === undefined) return;
        delete flat['callbackID'];
        delete flat['dom'];
        flat['domain'] = new Domain(this.#caller, dom);
        // The generated types and the schema come from the same struct.
        listener(flat as unknown as DomainEvent<K>);
      },
    });
  }

  /** Makes a registration for QEMU monitor events. */
  addMonitorEvent(filter: MonitorEventFilter, listener: (event: MonitorEvent) => void): Registration {
    const flags =
      (filter.isRegex === true ? MonitorFlags.REGEX : 0) | (filter.ignoreCase === true ? MonitorFlags.NOCASE : 0);
    return this.#add('QEMU_CONNECT_DOMAIN_MONITOR_EVENT_REGISTER', {
      args: { dom: filter.domain?.ref ?? null, event: filter.event ?? null, flags },
      deliver: (message) => {
        const { dom, ...fields } = message as Omit<MonitorEvent, 'domain'> & { readonly dom: DomainRef };
        const { event, seconds, micros, details } = fields;
        listener({ domain: new Domain(this.#caller, dom), event, seconds, micros, details });
      },
    });
  }

  /**
   * Registers with the daemon. The callback id is put in while the reply is being handled, since the first events may
   * stand right behind it; events of unknown id are kept as long as a registration is pending.
   */
  async register(registration: Registration, call: RegisterCall): Promise<void> {
    this.#pending++;
    try {
      await call(registration.procedure, registration.args, (ret) => {
        const { callbackID } = ret as { readonly callbackID: number };
        registration.callbackId = callbackID;
        this.#byCallbackId.set(keyOf(registration.procedure, callbackID), registration);
        this.#replay(keyOf(registration.procedure, callbackID));
      });
    } finally {
      this.#pending--;
      if (this.#pending === 0) this.#early = [];
    }
  }

  /** Registers everything anew, in the order of subscription; all or nothing. */
  async registerAll(call: RegisterCall): Promise<void> {
    for (const registration of this.#registrations) await this.register(registration, call);
  }

  /** Forgets all callback ids: they died with the socket. */
  disconnected(): void {
    this.#byCallbackId.clear();
    this.#early = [];
    for (const registration of this.#registrations) registration.callbackId = undefined;
  }

  /** Ends a subscription at once; returns what to tell the daemon. */
  remove(registration: Registration): Deregistration | undefined {
    const wasKnown = this.#registrations.delete(registration);
    const { callbackId, procedure } = registration;
    if (!wasKnown || callbackId === undefined) return undefined;
    this.#byCallbackId.delete(keyOf(procedure, callbackId));
    const isMonitor = procedure === 'QEMU_CONNECT_DOMAIN_MONITOR_EVENT_REGISTER';
    return {
      procedure: isMonitor
        ? 'QEMU_CONNECT_DOMAIN_MONITOR_EVENT_DEREGISTER'
        : 'CONNECT_DOMAIN_EVENT_CALLBACK_DEREGISTER_ANY',
      callbackID: callbackId,
    };
  }

  /** Takes an event message; true when it belongs to a subscription, or may yet. */
  dispatch(procedure: Procedure, message: unknown): void {
    const { callbackID } = message as Partial<CallbackMessage>;
    if (callbackID === undefined) return;
    const register = procedure.name.startsWith('QEMU_')
      ? 'QEMU_CONNECT_DOMAIN_MONITOR_EVENT_REGISTER'
      : 'CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY';
    const key = keyOf(register, callbackID);
    const registration = this.#byCallbackId.get(key);
    if (registration !== undefined) deliverSafely(registration, message);
    else if (this.#pending > 0 && this.#early.length < MAX_EARLY_MESSAGES) this.#early.push({ key, message });
  }

  #add(procedure: string, part: Pick<Registration, 'args' | 'deliver'>): Registration {
    const registration: Registration = { procedure, ...part, callbackId: undefined };
    this.#registrations.add(registration);
    return registration;
  }

  #replay(key: string): void {
    const registration = this.#byCallbackId.get(key);
    const mine = this.#early.filter((entry) => entry.key === key);
    this.#early = this.#early.filter((entry) => entry.key !== key);
    for (const { message } of mine) if (registration !== undefined) deliverSafely(registration, message);
  }
}

function keyOf(procedure: string, callbackId: number): string {
  return `${procedure} ${String(callbackId)}`;
}

/** A listener that throws is a bug of its owner: it must not stop the packet loop, nor be swallowed. */
function deliverSafely(registration: Registration, message: unknown): void {
  try {
    registration.deliver(message);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
