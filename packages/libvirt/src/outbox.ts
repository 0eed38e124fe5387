import type { OutgoingDescriptors } from './descriptors.ts';
import type { Transport } from './socket.ts';

const MAX_JOINED_BYTES = 64 * 1024;

/** What goes to the transport in one piece. */
interface Write {
  readonly bytes: Buffer;
  readonly onWritten?: ((error?: Error | null) => void) | undefined;
  readonly descriptors?: OutgoingDescriptors;
}

/**
 * Gathers the packets of one turn of the event loop into one write. Several calls are often made at once, as several
 * answers come in one piece, and each write to a socket is a system call.
 *
 * Descriptors do not go through the transport's own queue. While a packet waits for the kernel to take it, and then its
 * descriptors, whatever else is sent waits here: what comes between them would be taken for their bytes.
 */
export class Outbox {
  readonly #transport: Transport;
  readonly #onFailed: (error: unknown) => void;
  #waiting: Buffer[] = [];
  #bytes = 0;
  /** Writes that wait until descriptors are out; undefined while none are on the way. */
  #held: Write[] | undefined;
  #sending: AbortController | undefined;

  /** @param onFailed descriptors could not be sent after their packet was, so that the peer waits for them for ever. */
  constructor(transport: Transport, onFailed: (error: unknown) => void) {
    this.#transport = transport;
    this.#onFailed = onFailed;
  }

  /** Sends a packet, at the end of the current turn at the latest. */
  send(packet: Buffer): void {
    if (this.#waiting.length === 0) queueMicrotask(() => this.#flush());
    else if (this.#bytes + packet.length > MAX_JOINED_BYTES) this.#flush();
    this.#waiting.push(packet);
    this.#bytes += packet.length;
  }

  /** Sends a packet after those that wait; the callback comes when the kernel has taken it. */
  sendNow(packet: Buffer, onWritten?: (error?: Error | null) => void): void {
    this.#flush();
    this.#write({ bytes: packet, onWritten });
  }

  /** Sends a packet after those that wait, then its descriptors, and closes those. */
  sendWithDescriptors(packet: Buffer, descriptors: OutgoingDescriptors): void {
    this.#flush();
    this.#write({ bytes: packet, descriptors });
  }

  /** Forgets what waits: there is nobody to send it to. */
  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
    for (const { descriptors } of this.#held ?? []) descriptors?.[Symbol.dispose]();
    this.#held = [];
    this.#sending?.abort();
  }

  #flush(): void {
    const [first, ...others] = this.#waiting;
    if (first === undefined) return;
    this.#waiting = [];
    this.#write({ bytes: others.length === 0 ? first : Buffer.concat([first, ...others], this.#bytes) });
    this.#bytes = 0;
  }

  #write(write: Write): void {
    if (this.#held !== undefined) this.#held.push(write);
    else if (write.descriptors === undefined) this.#transport.write(write.bytes, write.onWritten);
    else void this.#writeWithDescriptors(write.bytes, write.descriptors);
  }

  /** Never rejects. */
  async #writeWithDescriptors(bytes: Buffer, descriptors: OutgoingDescriptors): Promise<void> {
    using copies = descriptors;
    const sending = new AbortController();
    const { signal } = sending;
    this.#sending = sending;
    this.#held = [];
    try {
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
        this.#transport.write(bytes, (error) => (error === undefined || error === null ? resolve() : reject(error)));
      });
      signal.throwIfAborted();
      await this.#transport.sendDescriptors(copies, signal);
    } catch (error) {
      if (!signal.aborted) this.#onFailed(error);
      return;
    }
    if (!signal.aborted) this.#release();
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const write of held) this.#write(write);
  }
}
