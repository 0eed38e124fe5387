import type { CallOptions, OpenedStream, StreamOptions } from './caller.ts';
import { structCoder } from './codec.ts';
import { Deadlines } from './deadlines.ts';
import { copiesFor } from './descriptors.ts';
import type { CopyDescriptors } from './descriptors.ts';
import { LibvirtError } from './errors.ts';
import type { LibvirtErrorFields } from './errors.ts';
import { Framer } from './frames.ts';
import { ErrorDomain, ErrorNumber } from './gen/constants.gen.ts';
import type { VirNetMessageError, VirNetStreamHole } from './gen/types.gen.ts';
import { PROGRAMS } from './gen/schema.gen.ts';
import { startKeepalive } from './keepalive.ts';
import type { Keepalive } from './keepalive.ts';
import type { KeepalivePolicy } from './options.ts';
import { Outbox } from './outbox.ts';
import { finishPacket, PacketStatus, PacketType, readHeader, startPacket } from './packet.ts';
import type { PacketHeader } from './packet.ts';
import { abortError, PendingCall } from './pending.ts';
import type { ReplyHook } from './pending.ts';
import { findProcedure, findProcedureByNumber } from './procedures.ts';
import type { Procedure } from './procedures.ts';
import type { Transport } from './socket.ts';
import { RpcStream } from './streams.ts';
import { XdrReader } from './xdr.ts';

const SERIAL_OFFSET = 20;
const SERIAL_MAX = 0xffff_ffff;
const PING = 1;
const PONG = 2;

/** Limits of a channel. */
export interface ChannelConfig {
  readonly callTimeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueued: number;
  readonly keepalive: KeepalivePolicy | false;
  readonly copyDescriptors: CopyDescriptors | undefined;
}

/** What a channel tells its owner, synchronously and in the order of arrival. */
export interface ChannelEvents {
  readonly onMessage: (channel: Channel, procedure: Procedure, message: unknown) => void;
  /** Comes once; all pending calls and streams have failed by then. */
  readonly onEnd: (channel: Channel, error: LibvirtError) => void;
}

/** A call as `Channel.call` takes it. */
export interface ChannelCall {
  readonly procedure: string;
  readonly args?: unknown;
  readonly options?: CallOptions | undefined;
  readonly onReply?: ReplyHook;
}

/** The RPC protocol over one transport: serials, slots, replies, streams, keepalive. Ends once, for good. */
export class Channel {
  readonly #transport: Transport;
  readonly #config: ChannelConfig;
  readonly #events: ChannelEvents;
  readonly #framer = new Framer((packet) => this.#receive(packet));
  readonly #inFlight = new Map<number, PendingCall>();
  readonly #streams = new Map<number, RpcStream>();
  /** Streams of calls that have no serial yet. */
  readonly #waitingStreams = new WeakMap<PendingCall, RpcStream>();
  readonly #keepalive: Keepalive;
  readonly #outbox: Outbox;
  readonly #deadlines = new Deadlines(() => [...this.#inFlight.values(), ...this.#queue]);
  #queue: PendingCall[] = [];
  #lastSerial = 0;
  #endedBy: LibvirtError | undefined;

  constructor(transport: Transport, config: ChannelConfig, events: ChannelEvents) {
    this.#transport = transport;
    this.#outbox = new Outbox(transport, (error) => this.end(descriptorsLost(error)));
    this.#config = config;
    this.#events = events;
    this.#keepalive = startKeepalive(config.keepalive, {
      ping: () => this.#sendKeepalive(PING),
      onDead: () => this.end(lost(ErrorNumber.INTERNAL_ERROR, 'connection closed due to keepalive timeout')),
    });
    transport.start(
      (chunk) => this.#onData(chunk),
      (cause) => this.#onTransportEnd(cause),
    );
  }

  /** Why the channel ended, undefined while it lives. */
  get endedBy(): LibvirtError | undefined {
    return this.#endedBy;
  }

  /** Sends a call as soon as a slot is free. Never throws: what cannot be encoded rejects. */
  call(call: ChannelCall): Promise<unknown> {
    const procedure = findProcedure(call.procedure);
    try {
      return this.#submit(checkedProcedure(procedure, call.procedure), call).promise;
    } catch (error) {
      if (!(error instanceof LibvirtError)) throw error;
      return Promise.reject(error);
    }
  }

  /** Sends a call that opens a stream; the stream exists before the call leaves, as data may follow its reply. */
  async openStream(name: string, args: unknown, options: StreamOptions = {}): Promise<OpenedStream<unknown>> {
    const procedure = checkedProcedure(findProcedure(name), name);
    const { stream: direction } = procedure;
    if (direction === undefined) throw LibvirtError.client('InvalidArgument', `${name} opens no stream`);
    const stream = new RpcStream(
      {
        data: (serial, bytes, onWritten) =>
          this.#sendStream(procedure, serial, PacketStatus.CONTINUE, bytes, onWritten),
        finish: (serial) => this.#sendStream(procedure, serial, PacketStatus.OK),
        abort: (serial) => this.#sendStream(procedure, serial, PacketStatus.ERROR),
        release: (serial) => this.#streams.delete(serial),
      },
      direction,
      options.maxBufferedBytes,
    );
    // A caller that gave up before the reply leaves nobody to read the stream.
    const onReply: ReplyHook = (_ret, isAbandoned) => {
      if (isAbandoned) stream.destroy();
    };
    // Until the caller has the stream, its errors are the call's.
    const ignore = (): void => undefined;
    stream.on('error', ignore);
    const ret = await this.#submit(procedure, { procedure: name, args, options, onReply }, stream).promise;
    stream.off('error', ignore);
    return { ret, stream };
  }

  /** Ends the channel: every pending call and stream fails with the error. */
  end(error: LibvirtError): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = error;
    this.#framer.stop();
    this.#keepalive[Symbol.dispose]();
    this.#deadlines[Symbol.dispose]();
    this.#outbox.clear();
    this.#transport.destroy();
    const calls = [...this.#inFlight.values(), ...this.#queue];
    this.#inFlight.clear();
    this.#queue = [];
    for (const call of calls) call.fail(error.forProcedure(call.procedure.name));
    for (const stream of [...this.#streams.values()]) stream.fail(error);
    this.#events.onEnd(this, error);
  }

  #submit(procedure: Procedure, { args, options = {}, onReply }: ChannelCall, stream?: RpcStream): PendingCall {
    if (this.#endedBy !== undefined) throw this.#endedBy.forProcedure(procedure.name);
    if (options.signal?.aborted === true) throw abortError(procedure.name, options.signal.reason);
    const isQueued = this.#inFlight.size >= this.#config.maxInFlight;
    if (isQueued && this.#queue.length >= this.#config.maxQueued) {
      const text = `${procedure.name}: ${String(this.#queue.length)} calls are waiting already`;
      throw LibvirtError.client('QueueFull', text, { procedure: procedure.name });
    }
    const limits = { timeoutMs: options.timeoutMs ?? this.#config.callTimeoutMs, nowMs: performance.now() };
    const { descriptors = [] } = options;
    const packet = encodeCall(procedure, args, descriptors.length);
    const copies = copiesFor(procedure, descriptors, this.#config.copyDescriptors);
    const call = new PendingCall(procedure, packet, onReply, limits, copies);
    call.onGiveUp(options.signal, () => this.#forgetQueued(call));
    this.#deadlines.add(call.deadlineAtMs, limits.nowMs);
    if (stream !== undefined) this.#waitingStreams.set(call, stream);
    if (isQueued) this.#queue.push(call);
    else this.#send(call);
    return call;
  }

  #forgetQueued(call: PendingCall): void {
    if (call.serial === 0) this.#queue = this.#queue.filter((other) => other !== call);
  }

  #send(call: PendingCall): void {
    call.serial = this.#nextSerial();
    call.packet.writeUInt32BE(call.serial, SERIAL_OFFSET);
    this.#inFlight.set(call.serial, call);
    const stream = this.#waitingStreams.get(call);
    if (stream !== undefined) {
      stream.serial = call.serial;
      this.#streams.set(call.serial, stream);
    }
    const descriptors = call.takeDescriptors();
    if (descriptors === undefined) this.#outbox.send(call.packet);
    else this.#outbox.sendWithDescriptors(call.packet, descriptors);
  }

  #nextSerial(): number {
    do {
      this.#lastSerial = this.#lastSerial >= SERIAL_MAX ? 1 : this.#lastSerial + 1;
    } while (this.#inFlight.has(this.#lastSerial) || this.#streams.has(this.#lastSerial));
    return this.#lastSerial;
  }

  #sendNext(): void {
    while (this.#queue.length > 0 && this.#inFlight.size < this.#config.maxInFlight && this.#endedBy === undefined) {
      const call = this.#queue.shift();
      if (call !== undefined && !call.isSettled) this.#send(call);
    }
  }

  #sendStream(
    procedure: Procedure,
    serial: number,
    status: number,
    bytes?: Uint8Array,
    onWritten?: (error?: Error | null) => void,
  ): void {
    if (this.#endedBy !== undefined) return onWritten?.(this.#endedBy);
    const writer = startPacket({
      program: procedure.program,
      version: 1,
      procedure: procedure.number,
      type: PacketType.STREAM,
      serial,
      status,
    });
    if (bytes !== undefined) writer.raw(bytes);
    this.#outbox.sendNow(finishPacket(writer), onWritten);
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
    this.#outbox.sendNow(finishPacket(startPacket(header)));
  }

  #onData(chunk: Buffer): void {
    this.#keepalive.heard();
    try {
      this.#framer.push(chunk);
    } catch (error) {
      // A peer that does not speak the protocol is as good as gone; a bug of ours is not hidden.
      if (!(error instanceof LibvirtError)) throw error;
      this.end(error);
    }
  }

  #onTransportEnd(cause: Error | undefined): void {
    const where = this.#framer.isMidPacket ? ' in the middle of a packet' : '';
    const text = `End of file while reading data${where}: ${cause?.message ?? 'Input/output error'}`;
    this.end(lost(ErrorNumber.SYSTEM_ERROR, text, cause));
  }

  #receive(packet: Buffer): void {
    const reader = new XdrReader(packet, 4);
    const header = readHeader(reader);
    switch (header.type) {
      case PacketType.REPLY:
        return this.#onReply(header, reader);
      case PacketType.MESSAGE:
        return this.#onMessage(header, reader);
      case PacketType.STREAM:
        return this.#onStream(header, reader);
      case PacketType.STREAM_HOLE: {
        const hole = structCoder('virNetStreamHole').decode(reader) as VirNetStreamHole;
        return this.#streams.get(header.serial)?.receiveHole(hole.length);
      }
      default:
        throw LibvirtError.client('Protocol', `packet of type ${String(header.type)}, which a daemon never sends`);
    }
  }

  #onReply(header: PacketHeader, reader: XdrReader): void {
    const call = this.#inFlight.get(header.serial);
    if (call === undefined) {
      throw LibvirtError.client('Protocol', `reply with serial ${String(header.serial)}, which no pending call has`);
    }
    const { procedure } = call;
    if (header.procedure !== procedure.number || header.program !== procedure.program) {
      const text = `reply of procedure ${String(header.procedure)} to serial ${String(header.serial)}, which is a ${procedure.name}`;
      throw LibvirtError.client('Protocol', text);
    }
    this.#inFlight.delete(header.serial);
    if (header.status === PacketStatus.ERROR) this.#onErrorReply(call, reader);
    else this.#onGoodReply(call, reader);
    this.#sendNext();
  }

  #onErrorReply(call: PendingCall, reader: XdrReader): void {
    const stream = this.#streams.get(call.serial);
    const error = decodeError(reader, call.procedure.name);
    call.fail(error);
    // There is no stream after an error; the caller has the error from the call.
    this.#streams.delete(call.serial);
    stream?.fail(error);
  }

  #onGoodReply(call: PendingCall, reader: XdrReader): void {
    let ret: unknown;
    try {
      ret = call.procedure.ret?.decode(reader);
    } catch (error) {
      if (error instanceof LibvirtError) call.fail(error.forProcedure(call.procedure.name));
      throw error;
    }
    call.onReply?.(ret, call.isSettled);
    call.succeed(ret);
  }

  #onMessage(header: PacketHeader, reader: XdrReader): void {
    if (header.program === PROGRAMS.keepalive) {
      if (header.procedure === PING) this.#sendKeepalive(PONG);
      return;
    }
    const procedure = findProcedureByNumber(header.program, header.procedure);
    // A newer daemon sends only what was registered for, so an unknown message is nobody's.
    if (procedure?.msg === undefined) return;
    this.#events.onMessage(this, procedure, procedure.msg.decode(reader));
  }

  #onStream(header: PacketHeader, reader: XdrReader): void {
    const stream = this.#streams.get(header.serial);
    if (stream === undefined) return;
    if (header.status === PacketStatus.CONTINUE) stream.receive(reader.rest());
    else if (header.status === PacketStatus.OK) stream.confirmed();
    else stream.fail(decodeError(reader, findProcedureByNumber(header.program, header.procedure)?.name));
  }
}

function encodeCall(procedure: Procedure, args: unknown, descriptors: number): Buffer {
  const { program, number, name } = procedure;
  const type = descriptors > 0 ? PacketType.CALL_WITH_FDS : PacketType.CALL;
  const writer = startPacket({ program, version: 1, procedure: number, type, serial: 0, status: 0 });
  if (descriptors > 0) writer.uint(descriptors);
  try {
    procedure.args?.encode(writer, args);
    return finishPacket(writer);
  } catch (error) {
    if (!(error instanceof LibvirtError)) throw error;
    throw LibvirtError.client('InvalidArgument', `${name}: ${error.message}`, { procedure: name, cause: error });
  }
}

function checkedProcedure(procedure: Procedure | undefined, name: string): Procedure {
  if (procedure === undefined || procedure.isEvent) {
    throw LibvirtError.client('InvalidArgument', `${name} is no call of the protocol`);
  }
  return procedure;
}

function decodeError(reader: XdrReader, procedure: string | undefined): LibvirtError {
  const wire = structCoder('virNetMessageError').decode(reader) as VirNetMessageError;
  const message = wire.message ?? `libvirt error ${String(wire.code)} without a message`;
  const { domain, level, str1, str2, str3, int1, int2 } = wire;
  // As the C library: a daemon that does not know the call is one without support for it.
  const isUnknown = wire.code === ErrorNumber.RPC && message.startsWith('unknown procedure');
  const code = isUnknown ? ErrorNumber.NO_SUPPORT : wire.code;
  const fields: LibvirtErrorFields = { kind: 'Daemon', code, domain, level, str1, str2, str3, int1, int2, procedure };
  return new LibvirtError(message, fields);
}

/** The daemon waits for what does not come, and would take the next packet for it. */
function descriptorsLost(error: unknown): LibvirtError {
  const cause = error instanceof Error ? error : new Error(String(error));
  return lost(ErrorNumber.SYSTEM_ERROR, `file descriptors could not be sent: ${cause.message}`, cause);
}

function lost(code: number, message: string, cause?: Error): LibvirtError {
  return new LibvirtError(
    message,
    { kind: 'ConnectionLost', code, domain: ErrorDomain.RPC, level: 2 },
    cause === undefined ? undefined : { cause },
  );
}
