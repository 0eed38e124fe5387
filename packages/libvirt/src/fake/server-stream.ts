import type { LibvirtError } from '../errors.ts';
import { PacketStatus } from '../packet.ts';

/** The daemon's side of a stream as its source sees it. */
export interface StreamPeer {
  /** Sends data to the client. */
  send(bytes: Uint8Array): void;
  /** Ends the data. */
  end(): void;
  /** Ends the stream with an error. */
  fail(error: LibvirtError): void;
}

/** What stands behind a stream: a picture, a console. */
export interface StreamSource {
  /** The stream is open. */
  start(peer: StreamPeer): void;
  /** Data from the client. */
  receive?(bytes: Buffer): void;
  /** The client has finished, aborted, or is gone. */
  closed?(): void;
}

interface StreamWire {
  readonly send: (status: number, bytes: Uint8Array) => void;
  readonly fail: (error: LibvirtError) => void;
  readonly release: () => void;
}

const NOTHING = new Uint8Array(0);
const CHUNK_BYTES = 262_120;

/** Stream packets of one call, the daemon's side. */
export class ServerStream {
  readonly #source: StreamSource;
  readonly #wire: StreamWire;
  #isOver = false;

  constructor(source: StreamSource, wire: StreamWire) {
    this.#source = source;
    this.#wire = wire;
  }

  /** The reply has been sent. */
  start(): void {
    this.#source.start({
      send: (bytes) => {
        for (let at = 0; at < bytes.length && !this.#isOver; at += CHUNK_BYTES) {
          this.#wire.send(PacketStatus.CONTINUE, bytes.subarray(at, at + CHUNK_BYTES));
        }
      },
      end: () => {
        if (!this.#isOver) this.#wire.send(PacketStatus.CONTINUE, NOTHING);
      },
      fail: (error) => {
        if (this.#isOver) return;
        this.#over();
        this.#wire.fail(error);
      },
    });
  }

  /** A stream packet of the client: data, finish (OK) or abort (ERROR); the latter two are confirmed. */
  receive(status: number, bytes: Buffer): void {
    if (this.#isOver) return;
    if (status === PacketStatus.CONTINUE) {
      this.#source.receive?.(Buffer.from(bytes));
      return;
    }
    this.#over();
    this.#wire.send(PacketStatus.OK, NOTHING);
  }

  /** The client's connection has ended. */
  abandoned(): void {
    if (!this.#isOver) this.#over();
  }

  #over(): void {
    this.#isOver = true;
    this.#wire.release();
    this.#source.closed?.();
  }
}
