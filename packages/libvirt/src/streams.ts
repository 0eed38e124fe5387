import { Duplex } from 'node:stream';
import type { DuplexOptions, Readable } from 'node:stream';
import { LibvirtError } from './errors.ts';
import { MessageLimit } from './gen/constants.gen.ts';
import type { StreamDirection } from './procedures.ts';

/** Largest data packet: what every daemon takes. */
const CHUNK_BYTES = MessageLimit.LEGACY_PAYLOAD_MAX;
const DEFAULT_MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
const COLLECT_MAX_BYTES = 256 * 1024 * 1024;

/** What a stream sends; implemented by the channel. */
export interface StreamSender {
  data(serial: number, bytes: Uint8Array, onWritten: (error?: Error | null) => void): void;
  finish(serial: number): void;
  abort(serial: number): void;
  /** The stream is over in both ends; its serial is free. */
  release(serial: number): void;
}

/**
 * A libvirt stream as a Node stream.
 *
 * Reading has no brake in the protocol but to stop reading the socket, which would stop all calls too: a reader that
 * falls `maxBufferedBytes` behind gets its stream aborted. Writing waits for the socket, piece by piece.
 */
export class RpcStream extends Duplex {
  /** Serial of the call that opened it, 0 until the call is sent. */
  serial = 0;
  readonly #sender: StreamSender;
  readonly #direction: StreamDirection;
  readonly #maxBufferedBytes: number;
  #state: 'open' | 'closing' | 'over' = 'open';
  #onFinished: ((error?: Error | null) => void) | undefined;

  constructor(sender: StreamSender, direction: StreamDirection, maxBufferedBytes = DEFAULT_MAX_BUFFERED_BYTES) {
    super(duplexOptions(direction));
    this.#sender = sender;
    this.#direction = direction;
    this.#maxBufferedBytes = maxBufferedBytes;
  }

  /** A data packet came; an empty one is the end of data. */
  receive(bytes: Buffer): void {
    if (this.#state !== 'open') return;
    if (bytes.length === 0) {
      this.#endOfData();
    } else if (this.#direction !== 'write') {
      // The bytes lie in the socket's read buffer, which is used again.
      this.push(Buffer.from(bytes));
      if (this.readableLength > this.#maxBufferedBytes) {
        const text = `reader is ${String(this.readableLength)} bytes behind, limit ${String(this.#maxBufferedBytes)}`;
        this.destroy(LibvirtError.client('StreamFailed', text));
      }
    }
  }

  /** A hole of a sparse stream: reads as zeros, as long as they stay within the buffer limit. */
  receiveHole(length: bigint): void {
    if (length > BigInt(this.#maxBufferedBytes)) {
      this.destroy(
        LibvirtError.client('StreamFailed', `hole of ${String(length)} bytes, limit ${String(this.#maxBufferedBytes)}`),
      );
    } else if (length > 0n) {
      this.receive(Buffer.alloc(Number(length)));
    }
  }

  /** The daemon confirmed a finish or an abort. */
  confirmed(): void {
    this.#over();
    if (!this.destroyed) this.push(null);
    this.#onFinished?.();
    if (!this.writableEnded && this.#direction === 'duplex') this.end();
  }

  /** The daemon or the connection ended the stream with an error; that its owner closed the connection is none. */
  fail(error: LibvirtError): void {
    if (this.#state === 'over') return;
    this.#over();
    this.#onFinished?.(error);
    if (error.kind === 'Closed') this.destroy();
    else this.destroy(error);
  }

  override _read(): void {
    // Data is pushed as it comes.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    const sendFrom = (start: number): void => {
      if (this.#state !== 'open') return callback(LibvirtError.client('StreamFailed', 'the stream has ended'));
      const end = Math.min(start + CHUNK_BYTES, chunk.length);
      this.#sender.data(this.serial, chunk.subarray(start, end), (error) => {
        if (error !== undefined && error !== null) callback(error);
        else if (end < chunk.length) sendFrom(end);
        else callback();
      });
    };
    sendFrom(0);
  }

  override _final(callback: (error?: Error | null) => void): void {
    if (this.#state !== 'open') return callback();
    this.#state = 'closing';
    this.#onFinished = callback;
    this.#sender.finish(this.serial);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (this.#state === 'open') {
      this.#state = 'closing';
      if (this.serial !== 0) this.#sender.abort(this.serial);
    }
    callback(error);
  }

  #endOfData(): void {
    this.push(null);
    // The data has ended, the stream has not: it is over once both sides have said so.
    this.#state = 'closing';
    this.#sender.finish(this.serial);
  }

  #over(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#sender.release(this.serial);
  }
}

function duplexOptions(direction: StreamDirection): DuplexOptions {
  const options = { readable: direction !== 'write', writable: direction !== 'read', allowHalfOpen: true };
  return options;
}

/**
 * Reads a stream to its end.
 *
 * @throws {LibvirtError} `StreamFailed` past `maxBytes`.
 */
export async function collectStream(stream: Readable, maxBytes = COLLECT_MAX_BYTES): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of stream) {
    const bytes = chunk as Buffer;
    total += bytes.length;
    if (total > maxBytes) throw LibvirtError.client('StreamFailed', `stream is longer than ${String(maxBytes)} bytes`);
    chunks.push(bytes);
  }
  return new Uint8Array(Buffer.concat(chunks, total));
}
