import type { Duplex } from 'node:stream';
import type { Procedures, StreamProcedures } from './gen/types.gen.ts';

/** Name of an ordinary call; those of the QEMU program start with `QEMU_`. */
export type ProcedureName = keyof Procedures;

/** Name of a call that opens a stream. */
export type StreamProcedureName = keyof StreamProcedures;

/** Limits of one call. */
export interface CallOptions {
  /** Deadline from the moment of the call, its wait for a slot included; 0 is none. Default: the connection's. */
  readonly timeoutMs?: number;
  /**
   * Gives the call up. A call that is still queued is never sent; libvirt cannot cancel one that is sent, so its
   * slot stays taken until the daemon answers.
   */
  readonly signal?: AbortSignal;
  /**
   * File descriptors that go along, 32 at most; copied at once, so they may be closed when the call was made. Needs the
   * connection's `copyDescriptors`.
   */
  readonly descriptors?: readonly number[];
}

/** Options of a call that opens a stream. */
export interface StreamOptions extends CallOptions {
  /** Bytes received and not yet read at which the stream is aborted. Default 16 MiB. */
  readonly maxBufferedBytes?: number;
}

/** A stream and what the call that opened it returned. */
export interface OpenedStream<Ret> {
  readonly ret: Ret;
  /** Readable, writable or both, as the procedure says; `destroy()` aborts it in the daemon too. */
  readonly stream: Duplex;
}

/** Arguments of `call`: the args struct, or nothing when the procedure has none, then options. */
export type CallArguments<Args> = [Args] extends [undefined]
  ? readonly [args?: undefined, options?: CallOptions]
  : readonly [args: Args, options?: CallOptions];

/** What can carry out libvirt calls: a `Connection`. */
export interface Caller {
  call<P extends ProcedureName>(
    procedure: P,
    ...rest: CallArguments<Procedures[P]['args']>
  ): Promise<Procedures[P]['ret']>;
  openStream<P extends StreamProcedureName>(
    procedure: P,
    args: StreamProcedures[P]['args'],
    options?: StreamOptions,
  ): Promise<OpenedStream<StreamProcedures[P]['ret']>>;
}
