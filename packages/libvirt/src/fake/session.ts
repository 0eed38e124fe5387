import { structCoder } from '../codec.ts';
import { DOMAIN_EVENTS } from '../domain-events.ts';
import type { DomainEventKind } from '../domain-events.ts';
import { LibvirtError } from '../errors.ts';
import { Framer } from '../frames.ts';
import { ErrorDomain, ErrorNumber } from '../gen/constants.gen.ts';
import { PROGRAMS } from '../gen/schema.gen.ts';
import { finishPacket, PacketStatus, PacketType, readDescriptorCount, readHeader, startPacket } from '../packet.ts';
import type { PacketHeader } from '../packet.ts';
import { findProcedure, findProcedureByNumber } from '../procedures.ts';
import type { Procedure } from '../procedures.ts';
import type { Transport } from '../socket.ts';
import { XdrReader } from '../xdr.ts';
import { handlerOf } from './calls/table.ts';
import type { CallContext, StreamReply } from './calls/context.ts';
import type { FakeDomain } from './domain.ts';
import { daemonError } from './errors.ts';
import type { FaultAction } from './faults.ts';
import { ServerStream } from './server-stream.ts';

const NO_FAULT = undefined;
const PING = 1;
const PONG = 2;
const BEFORE_OPEN = new Set(['AUTH_LIST', 'AUTH_POLKIT', 'CONNECT_OPEN', 'CONNECT_CLOSE', 'CONNECT_SUPPORTS_FEATURE']);

/** What a session needs of its daemon. */
export interface SessionHost {
  readonly context: Omit<CallContext, 'session' | 'descriptors'>;
  readonly takeFault: (procedure: string) => FaultAction | undefined;
  readonly onCall: (procedure: string, args: unknown) => void;
  readonly onEnd: (session: Session) => void;
}

interface DomainRegistration {
  readonly eventId: number;
  readonly uuid: string | undefined;
}

interface MonitorRegistration {
  readonly uuid: string | undefined;
  readonly matches: (event: string) => boolean;
}

/** One client of the fake daemon. */
export class Session {
  readonly domainRegistrations = new Map<number, DomainRegistration>();
  readonly monitorRegistrations = new Map<number, MonitorRegistration>();
  readonly #transport: Transport;
  readonly #host: SessionHost;
  readonly #streams = new Map<number, ServerStream>();
  readonly #framer = new Framer((packet) => this.#receive(packet));
  readonly #timers = new Set<NodeJS.Timeout>();
  #isOpen = false;
  #isEnded = false;
  #held: Buffer[] | undefined;

  constructor(transport: Transport, host: SessionHost) {
    this.#transport = transport;
    this.#host = host;
    transport.start(
      (chunk) => this.#onData(chunk),
      () => this.end(),
    );
  }

  /** Marks the hypervisor connection open. @throws {LibvirtError} when it is open already. */
  open(): void {
    if (this.#isOpen) {
      this.#isOpen = false;
      throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.RPC, 'internal error: connection already open');
    }
    this.#isOpen = true;
  }

  /** Ends the socket at once. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#framer.stop();
    for (const timer of this.#timers) clearTimeout(timer);
    for (const stream of this.#streams.values()) stream.abandoned();
    this.#streams.clear();
    this.#transport.destroy();
    this.#host.onEnd(this);
  }

  /** Sends a domain event to the registrations that it matches. */
  emit(kind: DomainEventKind, domain: FakeDomain, fields: Readonly<Record<string, unknown>>): void {
    const [eventId, message] = DOMAIN_EVENTS[kind];
    for (const [callbackID, registration] of this.domainRegistrations) {
      if (registration.eventId !== eventId) continue;
      if (registration.uuid !== undefined && registration.uuid !== domain.uuid) continue;
      const flat = { dom: domain.ref, ...fields };
      // Older messages nest the fields in `msg`, newer do not; the schema takes what it knows.
      this.#sendMessage(message, { callbackID, ...flat, msg: flat });
    }
  }

  /** Sends a QEMU monitor event. */
  emitMonitor(domain: FakeDomain, event: string, details: string | null): void {
    for (const [callbackID, registration] of this.monitorRegistrations) {
      if (registration.uuid !== undefined && registration.uuid !== domain.uuid) continue;
      if (!registration.matches(event)) continue;
      const now = Date.now();
      const seconds = BigInt(Math.floor(now / 1000));
      const message = { callbackID, dom: domain.ref, event, seconds, micros: (now % 1000) * 1000, details };
      this.#sendMessage('QEMU_DOMAIN_MONITOR_EVENT', message);
    }
  }

  /** Sends a ping, as a daemon does to a silent client. */
  ping(): void {
    this.#sendKeepalive(PING);
  }

  /** Leaves what clients send unread, or reads on. */
  hold(isHeld: boolean): void {
    const held = this.#held ?? [];
    this.#held = isHeld ? held : undefined;
    if (!isHeld) for (const chunk of held) this.#onData(chunk);
  }

  #onData(chunk: Buffer): void {
    if (this.#held !== undefined) {
      this.#held.push(Buffer.from(chunk));
      return;
    }
    try {
      this.#framer.push(chunk);
    } catch (error) {
      if (!(error instanceof LibvirtError)) throw error;
      // As the daemon: malformed input ends the socket without a word.
      this.end();
    }
  }

  #receive(packet: Buffer): void {
    const reader = new XdrReader(packet, 4);
    const header = readHeader(reader);
    if (header.program === PROGRAMS.keepalive) {
      if (header.procedure === PING) this.#sendKeepalive(PONG);
    } else if (header.type === PacketType.CALL) {
      this.#onCall(header, reader, 0);
    } else if (header.type === PacketType.CALL_WITH_FDS) {
      this.#onCallWithDescriptors(header, reader);
    } else if (header.type === PacketType.STREAM) {
      this.#streams.get(header.serial)?.receive(header.status, reader.rest());
    }
  }

  /** The call counts once its descriptors are here; a byte comes with each, and that is all that is read of them. */
  #onCallWithDescriptors(header: PacketHeader, reader: XdrReader): void {
    const count = readDescriptorCount(reader);
    const args = Buffer.from(reader.rest());
    if (count === 0) this.#onCall(header, new XdrReader(args), 0);
    else this.#framer.skip(count, () => this.#onCall(header, new XdrReader(args), count));
  }

  #onCall(header: PacketHeader, reader: XdrReader, descriptors: number): void {
    const procedure = findProcedureByNumber(header.program, header.procedure);
    if (procedure === undefined || procedure.isEvent) return this.#replyError(header, unknownProcedure(header));
    let args: unknown;
    try {
      args = procedure.args?.decode(reader);
    } catch (error) {
      if (!(error instanceof LibvirtError)) throw error;
      return this.#replyError(
        header,
        daemonError(ErrorNumber.RPC, ErrorDomain.RPC, 'Unable to decode message payload'),
      );
    }
    this.#host.onCall(procedure.name, args);
    const fault = this.#host.takeFault(procedure.name);
    if (fault?.kind === 'cut' && fault.when !== 'after') return this.end();
    if (fault?.kind === 'error') {
      return this.#replyError(header, daemonError(fault.code, fault.domain ?? ErrorDomain.QEMU, fault.message));
    }
    void this.#carryOut(procedure, header, { args, descriptors }, fault);
  }

  /** Never rejects: a failing call is an error reply. */
  async #carryOut(
    procedure: Procedure,
    header: PacketHeader,
    { args, descriptors }: { readonly args: unknown; readonly descriptors: number },
    fault: FaultAction | undefined,
  ): Promise<void> {
    let stream: ServerStream | undefined;
    try {
      if (!this.#isOpen && !BEFORE_OPEN.has(procedure.name)) {
        throw daemonError(
          ErrorNumber.INTERNAL_ERROR,
          ErrorDomain.RPC,
          'internal error: hypervisor connection not open',
        );
      }
      const handler = handlerOf(procedure.name);
      if (handler === undefined) throw notSupported(procedure.name);
      const result = handler(args, { ...this.#host.context, session: this, descriptors });
      const ret: unknown = result instanceof Promise ? await result : result;
      const reply = procedure.stream === undefined ? ret : (ret as StreamReply).ret;
      if (procedure.stream !== undefined) stream = this.#openStream(header, ret as StreamReply);
      const packet = this.#packet(header, PacketStatus.OK, (writer) => procedure.ret?.encode(writer, reply));
      this.#sendReply(packet, header, fault, procedure.name === 'CONNECT_CLOSE');
    } catch (error) {
      this.#replyError(
        header,
        error instanceof LibvirtError && error.kind === 'Daemon' ? error : brokenFake(error),
        fault,
      );
    }
    stream?.start();
  }

  #openStream(header: PacketHeader, reply: StreamReply): ServerStream {
    const stream = new ServerStream(reply.source, {
      send: (status, bytes) =>
        this.#write(this.#packet({ ...header, type: PacketType.STREAM }, status, (writer) => writer.raw(bytes), true)),
      fail: (error) => this.#replyError({ ...header, type: PacketType.STREAM }, error, NO_FAULT, true),
      release: () => void this.#streams.delete(header.serial),
    });
    this.#streams.set(header.serial, stream);
    return stream;
  }

  #sendReply(packet: Buffer, header: PacketHeader, fault: FaultAction | undefined, endsSession: boolean): void {
    switch (fault?.kind) {
      case undefined:
      case 'error':
        this.#write(packet);
        if (endsSession) this.#later(0, () => this.end());
        return;
      case 'cut':
        return this.end();
      case 'silent':
        return;
      case 'slow':
        return this.#later(fault.delayMs, () => this.#write(packet));
      case 'halfPacket':
        this.#write(packet.subarray(0, Math.max(5, packet.length >> 1)));
        if (fault.then !== 'silence') this.#later(0, () => this.end());
        return;
      case 'giantLength':
        return this.#write(Buffer.from([0x7f, 0xff, 0xff, 0xff]));
      case 'wrongSerial': {
        const wrong = Buffer.from(packet);
        wrong.writeUInt32BE((header.serial + 0x1000_0000) >>> 0, 20);
        return this.#write(wrong);
      }
      case 'bytes':
        return this.#write(fault.bytes);
    }
  }

  #replyError(header: PacketHeader, error: LibvirtError, fault?: FaultAction, isStream = false): void {
    const coder = structCoder('virNetMessageError');
    const { code, domain, message, level, str1, str2, str3, int1, int2 } = error;
    const wire = { code, domain, message, level, dom: null, str1, str2, str3, int1, int2, net: null };
    const packet = this.#packet(header, PacketStatus.ERROR, (writer) => coder.encode(writer, wire), isStream);
    this.#sendReply(packet, header, fault, false);
  }

  #sendMessage(name: string, message: unknown): void {
    const procedure = findProcedure(name);
    if (procedure?.msg === undefined) throw new TypeError(`${name} is no message`);
    const { program, number, msg } = procedure;
    // Events carry serial 1 whatever the calls are at.
    const header = { program, version: 1, procedure: number, type: PacketType.MESSAGE, serial: 1, status: 0 };
    this.#write(this.#packet(header, PacketStatus.OK, (writer) => msg.encode(writer, message), true));
  }

  #sendKeepalive(procedure: number): void {
    const header = {
      program: PROGRAMS.keepalive,
      version: 1,
      procedure,
      type: PacketType.MESSAGE,
      serial: 0,
      status: 0,
    };
    this.#write(finishPacket(startPacket(header)));
  }

  #packet(
    header: PacketHeader,
    status: number,
    encode: (writer: ReturnType<typeof startPacket>) => void,
    keepsType = false,
  ): Buffer {
    const writer = startPacket({ ...header, type: keepsType ? header.type : PacketType.REPLY, status });
    encode(writer);
    return finishPacket(writer);
  }

  #write(bytes: Uint8Array): void {
    if (!this.#isEnded) this.#transport.write(bytes);
  }

  #later(delayMs: number, action: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, delayMs);
    this.#timers.add(timer);
  }
}

function unknownProcedure(header: PacketHeader): LibvirtError {
  const isKnown = Object.values(PROGRAMS).some((program) => program === header.program);
  const text = isKnown
    ? `unknown procedure: ${String(header.procedure)}`
    : `Cannot find program ${String(header.program)} version ${String(header.version)}`;
  return daemonError(ErrorNumber.RPC, ErrorDomain.RPC, text);
}

function notSupported(procedure: string): LibvirtError {
  const text = `this function is not supported by the connection driver: ${procedure}`;
  return daemonError(ErrorNumber.NO_SUPPORT, ErrorDomain.QEMU, text);
}

function brokenFake(error: unknown): LibvirtError {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.RPC, `internal error: fake daemon: ${text}`);
}
