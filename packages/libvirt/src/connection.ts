import type {
  CallArguments,
  CallOptions,
  Caller,
  OpenedStream,
  ProcedureName,
  StreamOptions,
  StreamProcedureName,
} from './caller.ts';
import type { Channel, ChannelConfig, ChannelEvents } from './channel.ts';
import { Domain } from './domain.ts';
import type { DomainEvent, DomainEventKind, MonitorEvent, MonitorEventFilter, Subscription } from './domain-events.ts';
import { LibvirtError } from './errors.ts';
import { EventRegistry } from './events.ts';
import type * as wire from './gen/types.gen.ts';
import { openChannel } from './opening.ts';
import type { ConnectOptions } from './options.ts';
import type { Procedure } from './procedures.ts';
import { Reconnector } from './reconnect.ts';
import type { RestoreAttempt } from './reconnect.ts';
import { TypedParams } from './typed-params.ts';
import { resolveTarget } from './uri.ts';
import type { Target } from './uri.ts';

const DEFAULT_OPEN_TIMEOUT_MS = 15_000;
const DEFAULT_CALL_TIMEOUT_MS = 120_000;
const CLOSE_TIMEOUT_MS = 2_000;

/** What happens to the connection itself. */
export type ConnectionEvent =
  /** The daemon is gone: all pending calls and streams have failed, events are being missed from now on. */
  | { readonly kind: 'lost'; readonly error: LibvirtError }
  /** Connected again and all subscriptions restored; what happened in the gap was not delivered: look anew. */
  | { readonly kind: 'reconnected'; readonly gapMs: number; readonly attempts: number }
  /** Over for good; `error` says why unless the owner closed it. */
  | { readonly kind: 'closed'; readonly error: LibvirtError | undefined };

/** State of a connection. */
export type ConnectionState = 'open' | 'reconnecting' | 'closed';

/** Statistics of one domain. */
export interface DomainStats {
  readonly domain: Domain;
  readonly params: TypedParams;
}

/**
 * Opens a connection to a libvirt daemon.
 *
 * @param options a URI, the path of a socket, or options.
 * @throws {LibvirtError} `ConnectFailed`, `AuthFailed`, `Aborted`, `InvalidArgument`, or what the daemon answered.
 */
export async function connect(options: string | ConnectOptions = {}): Promise<Connection> {
  const all =
    typeof options !== 'string' ? options : options.startsWith('/') ? { socketPath: options } : { uri: options };
  const connection = new Connection(all, resolveTarget(all, process.env));
  await connection.open();
  return connection;
}

/**
 * A connection to one daemon, made by `connect`. It restores itself after a loss, subscriptions included, and reports
 * the gap to `onConnectionEvent`; meanwhile calls fail at once with `ConnectionLost`.
 */
export class Connection implements Caller, AsyncDisposable {
  /** The driver's URI, `qemu:///system` for example. */
  readonly uri: string;
  readonly #options: ConnectOptions;
  readonly #target: Target;
  readonly #events = new EventRegistry(this);
  readonly #listeners = new Set<(event: ConnectionEvent) => void>();
  readonly #closing = new AbortController();
  readonly #reconnector: Reconnector;
  #channel: Channel | undefined;
  #state: ConnectionState = 'closed';
  #lostBy: LibvirtError | undefined;

  /** Use `connect`. */
  constructor(options: ConnectOptions, target: Target) {
    this.#options = options;
    this.#target = target;
    this.uri = target.driverUri;
    this.#reconnector = new Reconnector(options.reconnect, this.#closing.signal);
  }

  /** Whether calls can be made. */
  get state(): ConnectionState {
    return this.#state;
  }

  /** First opening; part of `connect`. */
  async open(): Promise<void> {
    const { waitForDaemonMs = 0, signal } = this.#options;
    const anySignal = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const channel = await this.#reconnector.firstOpening(waitForDaemonMs, anySignal, () =>
      this.#openChannel(anySignal),
    );
    if (channel.endedBy !== undefined) throw channel.endedBy;
    this.#channel = channel;
    this.#state = 'open';
  }

  /** A second connection to the same daemon, for long calls (migration) and big streams. */
  duplicate(changes: ConnectOptions = {}): Promise<Connection> {
    return connect({ ...this.#options, signal: this.#closing.signal, ...changes });
  }

  /** Tells the daemon, waits at most 2 s for its answer, and ends the socket. Everything pending fails. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    const channel = this.#channel;
    this.#channel = undefined;
    const wasClosed = this.#state === 'closed';
    this.#state = 'closed';
    if (channel !== undefined && channel.endedBy === undefined) {
      // A daemon that does not answer is left anyway, and cleans up when it sees the end of the socket.
      await channel
        .call({ procedure: 'CONNECT_CLOSE', options: { timeoutMs: CLOSE_TIMEOUT_MS } })
        .catch(() => undefined);
      channel.end(closedError());
    }
    if (!wasClosed) this.#emit({ kind: 'closed', error: undefined });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // Calls

  /**
   * Any ordinary call of the protocol, by its name; the methods below and those of `Domain` are short forms.
   *
   * @throws {LibvirtError} rejects; never throws synchronously.
   */
  call<P extends ProcedureName>(
    procedure: P,
    ...[args, options]: CallArguments<wire.Procedures[P]['args']>
  ): Promise<wire.Procedures[P]['ret']> {
    const channel = this.#channel;
    if (channel === undefined) return Promise.reject(this.#notConnected(procedure));
    // The generated table says which struct the procedure returns.
    return channel.call({ procedure, args, options }) as Promise<wire.Procedures[P]['ret']>;
  }

  /** Any call that opens a stream. */
  async openStream<P extends StreamProcedureName>(
    procedure: P,
    args: wire.StreamProcedures[P]['args'],
    options?: StreamOptions,
  ): Promise<OpenedStream<wire.StreamProcedures[P]['ret']>> {
    if (this.#channel === undefined) throw this.#notConnected(procedure);
    // The generated table says which struct the procedure returns.
    return (await this.#channel.openStream(procedure, args, options)) as OpenedStream<wire.StreamProcedures[P]['ret']>;
  }

  // Events

  /** What happens to the connection itself; `dispose` ends the delivery. */
  onConnectionEvent(listener: (event: ConnectionEvent) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /**
   * Subscribes to an event of all domains, or of one. Events come in the daemon's order across all subscriptions, each
   * before the answers that the daemon sends after it. The subscription survives reconnections.
   */
  async onDomainEvent<K extends DomainEventKind>(
    kind: K,
    listener: (event: DomainEvent<K>) => void,
    options: CallOptions & { readonly domain?: Domain } = {},
  ): Promise<Subscription> {
    return this.#subscribe(this.#events.addDomainEvent(kind, listener, options.domain), options);
  }

  /** Subscribes to events of QEMU's monitor. */
  async onMonitorEvent(
    listener: (event: MonitorEvent) => void,
    filter: MonitorEventFilter & CallOptions = {},
  ): Promise<Subscription> {
    return this.#subscribe(this.#events.addMonitorEvent(filter, listener), filter);
  }

  // The daemon and its host

  /** Version of the hypervisor: 7002022 is 7.2.22. */
  async getVersion(options?: CallOptions): Promise<bigint> {
    return (await this.call('CONNECT_GET_VERSION', undefined, options)).hv_ver;
  }

  /** Version of the daemon's libvirt: 9000000 is 9.0.0. */
  async getLibVersion(options?: CallOptions): Promise<bigint> {
    return (await this.call('CONNECT_GET_LIB_VERSION', undefined, options)).lib_ver;
  }

  /** Name of the driver, `QEMU`. */
  async getType(options?: CallOptions): Promise<string> {
    return (await this.call('CONNECT_GET_TYPE', undefined, options)).type;
  }

  /** Name of the daemon's host. */
  async getHostname(options?: CallOptions): Promise<string> {
    return (await this.call('CONNECT_GET_HOSTNAME', undefined, options)).hostname;
  }

  /** URI as the daemon sees it. */
  async getUri(options?: CallOptions): Promise<string> {
    return (await this.call('CONNECT_GET_URI', undefined, options)).uri;
  }

  /** CPUs and memory (KiB) of the host. */
  getNodeInfo(options?: CallOptions): Promise<wire.NodeGetInfoRet> {
    return this.call('NODE_GET_INFO', undefined, options);
  }

  /** XML of the host's capabilities. */
  async getCapabilities(options?: CallOptions): Promise<string> {
    return (await this.call('CONNECT_GET_CAPABILITIES', undefined, options)).capabilities;
  }

  /** XML of what domains can have; null is the daemon's default. */
  async getDomainCapabilities(
    query: { emulator?: string; arch?: string; machine?: string; virtType?: string; flags?: number } = {},
    options?: CallOptions,
  ): Promise<string> {
    const { emulator = null, arch = null, machine = null, virtType = null, flags = 0 } = query;
    const args = { emulatorbin: emulator, arch, machine, virttype: virtType, flags };
    return (await this.call('CONNECT_GET_DOMAIN_CAPABILITIES', args, options)).capabilities;
  }

  /** SEV of the host; error OPERATION_UNSUPPORTED without. */
  async getSevInfo(options?: CallOptions): Promise<TypedParams> {
    return new TypedParams((await this.call('NODE_GET_SEV_INFO', { nparams: 0, flags: 0 }, options)).params);
  }

  // Domains

  /** Finds a domain; error NO_DOMAIN when there is none. */
  async lookupDomainByName(name: string, options?: CallOptions): Promise<Domain> {
    return this.domain((await this.call('DOMAIN_LOOKUP_BY_NAME', { name }, options)).dom);
  }

  /** Finds a domain by uuid, with or without dashes. */
  async lookupDomainByUuid(uuid: string, options?: CallOptions): Promise<Domain> {
    return this.domain((await this.call('DOMAIN_LOOKUP_BY_UUID', { uuid }, options)).dom);
  }

  /** Finds a running domain by its number. */
  async lookupDomainById(id: number, options?: CallOptions): Promise<Domain> {
    return this.domain((await this.call('DOMAIN_LOOKUP_BY_ID', { id }, options)).dom);
  }

  /** All domains; flags `ConnectListAllDomainsFlags` choose some. */
  async listAllDomains(flags = 0, options?: CallOptions): Promise<Domain[]> {
    const { domains } = await this.call('CONNECT_LIST_ALL_DOMAINS', { need_results: 1, flags }, options);
    return domains.map((dom) => this.domain(dom));
  }

  /** Defines a domain or changes its definition; flags `DomainDefineFlags`. */
  async defineDomainXml(xml: string, flags = 0, options?: CallOptions): Promise<Domain> {
    return this.domain((await this.call('DOMAIN_DEFINE_XML_FLAGS', { xml, flags }, options)).dom);
  }

  /** Starts a domain that is gone when it stops; flags `DomainCreateFlags`. */
  async createDomainXml(xml: string, flags = 0, options?: CallOptions): Promise<Domain> {
    return this.domain((await this.call('DOMAIN_CREATE_XML', { xml_desc: xml, flags }, options)).dom);
  }

  /**
   * Statistics of many domains in one call.
   *
   * @param query `stats` of `DomainStatsTypes` (0 = all), `flags` of `ConnectGetAllDomainStatsFlags`; without NOWAIT
   * it waits for a domain's job.
   */
  async getAllDomainStats(
    query: { readonly domains?: readonly Domain[]; readonly stats?: number; readonly flags?: number } = {},
    options?: CallOptions,
  ): Promise<DomainStats[]> {
    const { domains = [], stats = 0, flags = 0 } = query;
    const args = { doms: domains.map((domain) => domain.ref), stats, flags };
    const { retStats } = await this.call('CONNECT_GET_ALL_DOMAIN_STATS', args, options);
    return retStats.map(({ dom, params }) => ({ domain: this.domain(dom), params: new TypedParams(params) }));
  }

  /** A handle for a domain that is known already; makes no call. */
  domain(ref: wire.DomainRef): Domain {
    return new Domain(this, ref);
  }

  // Inside

  async #subscribe(
    registration: ReturnType<EventRegistry['addDomainEvent']>,
    options: CallOptions,
  ): Promise<Subscription> {
    try {
      await this.#events.register(registration, (procedure, args, onReply) => {
        if (this.#channel === undefined) return Promise.reject(this.#notConnected(procedure));
        return this.#channel.call({ procedure, args, options, onReply });
      });
    } catch (error) {
      this.#events.remove(registration);
      throw error;
    }
    const close = async (): Promise<void> => {
      const deregistration = this.#events.remove(registration);
      if (deregistration === undefined || this.#channel === undefined) return;
      const { procedure, callbackID } = deregistration;
      // With the socket gone the daemon has forgotten the registration by itself.
      await this.call(procedure, { callbackID }).catch((error: unknown) => {
        if (!(error instanceof LibvirtError) || error.kind !== 'ConnectionLost') throw error;
      });
    };
    return { close, [Symbol.asyncDispose]: close };
  }

  async #openChannel(signal: AbortSignal): Promise<Channel> {
    const options = this.#options;
    const config: ChannelConfig = {
      callTimeoutMs: options.callTimeoutMs ?? DEFAULT_CALL_TIMEOUT_MS,
      maxInFlight: options.maxInFlight ?? 4,
      maxQueued: options.maxQueued ?? 1024,
      keepalive: options.keepalive ?? {},
      copyDescriptors: options.copyDescriptors,
    };
    const events: ChannelEvents = {
      onMessage: (channel, procedure, message) => this.#onMessage(channel, procedure, message),
      onEnd: (channel, error) => {
        if (this.#channel === channel) this.#onLost(error);
      },
    };
    const openTimeoutMs = options.openTimeoutMs ?? DEFAULT_OPEN_TIMEOUT_MS;
    const channel = await openChannel({ target: this.#target, options, openTimeoutMs, config, events, signal });
    // The socket may have ended between the last reply and here.
    if (channel.endedBy !== undefined) throw channel.endedBy;
    return channel;
  }

  #onMessage(channel: Channel, procedure: Procedure, message: unknown): void {
    if (procedure.name === 'CONNECT_EVENT_CONNECTION_CLOSED') {
      const { reason } = message as wire.ConnectEventConnectionClosedMsg;
      const text = `the daemon lost its own connection to the hypervisor, reason ${String(reason)}`;
      channel.end(LibvirtError.client('ConnectionLost', text));
      return;
    }
    this.#events.dispatch(procedure, message);
  }

  #onLost(error: LibvirtError): void {
    this.#channel = undefined;
    this.#lostBy = error;
    this.#events.disconnected();
    const isFinal = this.#options.reconnect === false;
    this.#state = isFinal ? 'closed' : 'reconnecting';
    this.#emit({ kind: 'lost', error });
    if (isFinal) this.#emit({ kind: 'closed', error });
    else if (!this.#closing.signal.aborted) void this.#restore();
  }

  /** Never rejects: what goes wrong is an event. */
  async #restore(): Promise<void> {
    const error = await this.#reconnector.restore((attempt) => this.#reopen(attempt));
    if (error === undefined || this.#closing.signal.aborted) return;
    this.#state = 'closed';
    this.#lostBy = error;
    this.#emit({ kind: 'closed', error });
  }

  /** One try: socket, opening, all subscriptions; a failed registration gives the socket up. */
  async #reopen({ attempts, lostAtMs }: RestoreAttempt): Promise<void> {
    const channel = await this.#openChannel(this.#closing.signal);
    try {
      await this.#events.registerAll((procedure, args, onReply) => channel.call({ procedure, args, onReply }));
      if (channel.endedBy !== undefined) throw channel.endedBy;
      if (this.#closing.signal.aborted) throw closedError();
    } catch (error) {
      this.#events.disconnected();
      channel.end(LibvirtError.client('ConnectFailed', 'restoring the subscriptions failed', { cause: error }));
      throw error;
    }
    // In one turn, so that the next loss cannot come before this event.
    this.#channel = channel;
    this.#state = 'open';
    this.#emit({ kind: 'reconnected', gapMs: performance.now() - lostAtMs, attempts });
  }

  #notConnected(procedure: string): LibvirtError {
    if (this.#closing.signal.aborted) return closedError().forProcedure(procedure);
    const why = this.#lostBy?.message ?? 'not opened';
    const kind = this.#state === 'reconnecting' ? 'ConnectionLost' : 'Closed';
    return LibvirtError.client(kind, `${procedure}: not connected to ${this.uri}: ${why}`, { procedure });
  }

  #emit(event: ConnectionEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

function closedError(): LibvirtError {
  return LibvirtError.client('Closed', 'client socket is closed');
}
