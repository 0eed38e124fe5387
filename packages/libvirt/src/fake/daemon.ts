import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import type { ProcedureName, StreamProcedureName } from '../caller.ts';
import { duplexTransport } from '../socket.ts';
import type { FakeDomain } from './domain.ts';
import { FaultPlan } from './faults.ts';
import type { GuestBehaviour } from './guest.ts';
import { FakeHypervisor } from './hypervisor.ts';
import type { HostFacts } from './hypervisor.ts';
import { Session } from './session.ts';

const MAX_CALL_LOG = 10_000;

/** What a fake daemon is like. */
export interface FakeDaemonOptions {
  /** Where to listen; default a file in a temporary directory, `null` for in-process connections only. */
  readonly socketPath?: string | null;
  /** Name that CONNECT_OPEN must give. Default `qemu:///system`. */
  readonly uri?: string;
  /** Behaviour of guests that have none of their own. */
  readonly guest?: GuestBehaviour;
  readonly host?: Partial<HostFacts>;
}

/** A call that the daemon has received. */
export interface ReceivedCall {
  readonly procedure: string;
  readonly args: unknown;
}

const DEFAULT_HOST: HostFacts = {
  hostname: 'fake',
  libvirtVersion: 9_000_000n,
  hypervisorVersion: 7_002_022n,
  cpus: 2,
  memoryKiB: 8n << 20n,
  capabilities:
    '<capabilities>\n  <host>\n    <cpu>\n      <arch>x86_64</arch>\n    </cpu>\n  </host>\n</capabilities>\n',
  domainCapabilities: '<domainCapabilities>\n  <domain>qemu</domain>\n</domainCapabilities>\n',
};

/** Starts a fake daemon; it serves when this resolves. */
export async function startFakeDaemon(options: FakeDaemonOptions = {}): Promise<FakeDaemon> {
  const directory = options.socketPath === undefined ? mkdtempSync(join(tmpdir(), 'fake-libvirt-')) : undefined;
  const socketPath = directory === undefined ? (options.socketPath ?? undefined) : join(directory, 'libvirt-sock');
  const daemon = new FakeDaemon(options, socketPath, directory);
  await daemon.start();
  return daemon;
}

/**
 * A libvirt daemon in memory: the real protocol over a unix socket or in-process pipes, domains with states, events,
 * an agent, and faults on demand. Its domains survive `crash`, as guests survive their daemon.
 */
export class FakeDaemon implements AsyncDisposable {
  readonly uri: string;
  readonly faults = new FaultPlan();
  readonly hypervisor: FakeHypervisor;
  readonly #socketPath: string | undefined;
  readonly #directory: string | undefined;
  readonly #sessions = new Set<Session>();
  #calls: ReceivedCall[] = [];
  #server: Server | undefined;
  #isRefusing = false;
  #isPaused = false;
  #lastCallbackId = -1;

  /** Use `startFakeDaemon`. */
  constructor(options: FakeDaemonOptions, socketPath: string | undefined, directory: string | undefined) {
    this.uri = options.uri ?? 'qemu:///system';
    this.#socketPath = socketPath;
    this.#directory = directory;
    this.hypervisor = new FakeHypervisor({ ...DEFAULT_HOST, ...options.host }, options.guest ?? {}, {
      emit: (kind, domain, fields) => {
        for (const session of this.#sessions) session.emit(kind, domain, fields);
      },
      emitMonitor: (domain, event) => this.emitMonitorEvent(domain, event),
    });
  }

  /** Where it listens. @throws {TypeError} when it serves in-process connections only. */
  get socketPath(): string {
    if (this.#socketPath === undefined) throw new TypeError('this fake daemon has no socket');
    return this.#socketPath;
  }

  /** Clients connected now. */
  get clients(): number {
    return this.#sessions.size;
  }

  /** The last 10,000 calls, oldest first. */
  get calls(): readonly ReceivedCall[] {
    return this.#calls;
  }

  /** Calls of one procedure. */
  callsOf(procedure: ProcedureName | StreamProcedureName): readonly ReceivedCall[] {
    return this.#calls.filter((call) => call.procedure === procedure);
  }

  /** A domain by name, for its levers. */
  domain(name: string): FakeDomain {
    return this.hypervisor.byName(name);
  }

  /** An in-process connection, for `connect({ openTransport })`. */
  openTransport(): Duplex {
    const [client, server] = duplexPair();
    if (this.#isRefusing || this.#server === undefined) client.destroy(new Error('connection refused'));
    else this.#accept(server);
    return client;
  }

  /** Sends a QEMU monitor event to those registered for it. */
  emitMonitorEvent(domain: FakeDomain, event: string, details: string | null = null): void {
    for (const session of this.#sessions) session.emitMonitor(domain, event, details);
  }

  /** Pings all clients, as the daemon does to silent ones. */
  pingClients(): void {
    for (const session of this.#sessions) session.ping();
  }

  /** Fault: connections are accepted, nothing is read or answered. */
  pause(): void {
    this.#isPaused = true;
    for (const session of this.#sessions) session.hold(true);
  }

  /** Answers again, first of all what came meanwhile. */
  resume(): void {
    this.#isPaused = false;
    for (const session of this.#sessions) session.hold(false);
  }

  /** Fault: new connections are closed at once. */
  refuse(isRefusing: boolean): void {
    this.#isRefusing = isRefusing;
  }

  /** Fault: all connections break and the socket is gone, until `start`. */
  async crash(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
    this.disconnectClients();
    await closed;
  }

  /** Fault: all connections break; the daemon goes on. */
  disconnectClients(): void {
    for (const session of [...this.#sessions]) session.end();
  }

  /** Serves again after a crash. */
  async start(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      if (this.#isRefusing) socket.destroy();
      else this.#accept(socket);
    });
    this.#server = server;
    const path = this.#socketPath;
    if (path === undefined) return;
    rmSync(path, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
  }

  /** Ends connections, timers and socket. */
  async close(): Promise<void> {
    this.hypervisor.close();
    await this.crash();
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #accept(stream: Duplex): void {
    const { hypervisor, uri } = this;
    const session = new Session(duplexTransport(stream), {
      context: { hypervisor, uri, nextCallbackId: () => ++this.#lastCallbackId },
      takeFault: (procedure) => this.faults.take(procedure),
      onCall: (procedure, args) => {
        this.#calls.push({ procedure, args });
        if (this.#calls.length > MAX_CALL_LOG) this.#calls = this.#calls.slice(-MAX_CALL_LOG / 2);
      },
      onEnd: (ended) => {
        this.#sessions.delete(ended);
        for (const domain of hypervisor.domains) domain.dropDescriptors(ended);
      },
    });
    if (this.#isPaused) session.hold(true);
    this.#sessions.add(session);
  }
}
