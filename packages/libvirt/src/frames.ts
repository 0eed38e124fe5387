import { LibvirtError } from './errors.ts';
import { HEADER_BYTES, PACKET_MAX_BYTES } from './packet.ts';

/** Takes one whole packet; the bytes are valid during the call only. */
export type PacketSink = (packet: Buffer) => void;

/**
 * Cuts a byte stream into packets. A packet that lies whole within a chunk is handed on in place; one that comes in
 * parts is gathered in one buffer made from its length word.
 */
export class Framer {
  readonly #sink: PacketSink;
  readonly #lengthWord = Buffer.alloc(4);
  #lengthBytes = 0;
  #partial: Buffer | undefined;
  #filled = 0;
  #stopped = false;
  #skipping = 0;
  #onSkipped: () => void = () => undefined;

  constructor(sink: PacketSink) {
    this.#sink = sink;
  }

  /** True when the bytes so far end within a packet. */
  get isMidPacket(): boolean {
    return this.#partial !== undefined || this.#lengthBytes > 0;
  }

  /** Leaves out bytes that follow the packet in hand and belong to it; to be called by the sink, once. */
  skip(bytes: number, onSkipped: () => void): void {
    this.#skipping = bytes;
    this.#onSkipped = onSkipped;
  }

  /** Ignores everything from here on, also the rest of the chunk in progress. */
  stop(): void {
    this.#stopped = true;
    this.#partial = undefined;
  }

  /**
   * Takes the next bytes and calls the sink for each packet that they complete.
   *
   * @throws {LibvirtError} `Protocol` when a length word is below 28 or above 32 MiB; nothing is allocated for it.
   */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#stopped) {
      if (this.#skipping > 0) at = this.#skip(chunk, at);
      else at = this.#partial === undefined ? this.#start(chunk, at) : this.#gather(this.#partial, chunk, at);
    }
  }

  #skip(chunk: Buffer, at: number): number {
    const taken = Math.min(this.#skipping, chunk.length - at);
    this.#skipping -= taken;
    if (this.#skipping === 0) this.#onSkipped();
    return at + taken;
  }

  #start(chunk: Buffer, at: number): number {
    const available = chunk.length - at;
    if (this.#lengthBytes === 0 && available >= 4) {
      const length = checkLength(chunk.readUInt32BE(at));
      if (length <= available) {
        this.#sink(chunk.subarray(at, at + length));
        return at + length;
      }
    }
    const taken = Math.min(4 - this.#lengthBytes, available);
    chunk.copy(this.#lengthWord, this.#lengthBytes, at, at + taken);
    this.#lengthBytes += taken;
    if (this.#lengthBytes === 4) {
      this.#partial = Buffer.allocUnsafe(checkLength(this.#lengthWord.readUInt32BE(0)));
      this.#lengthWord.copy(this.#partial);
      this.#filled = 4;
      this.#lengthBytes = 0;
    }
    return at + taken;
  }

  #gather(partial: Buffer, chunk: Buffer, at: number): number {
    const taken = Math.min(partial.length - this.#filled, chunk.length - at);
    chunk.copy(partial, this.#filled, at, at + taken);
    this.#filled += taken;
    if (this.#filled === partial.length) {
      this.#partial = undefined;
      this.#sink(partial);
    }
    return at + taken;
  }
}

function checkLength(length: number): number {
  if (length >= HEADER_BYTES && length <= PACKET_MAX_BYTES) return length;
  throw LibvirtError.client(
    'Protocol',
    `packet length ${String(length)} is outside ${String(HEADER_BYTES)} to ${String(PACKET_MAX_BYTES)}: not a libvirt daemon, or out of step`,
  );
}
