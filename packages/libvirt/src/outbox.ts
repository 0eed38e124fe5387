import type { Transport } from './socket.ts';

const MAX_JOINED_BYTES = 64 * 1024;

/**
 * Gathers the packets of one turn of the event loop into one write. Several calls are often made at once, as several
 * answers come in one piece, and each write to a socket is a system call.
 */
export class Outbox {
  readonly #transport: Transport;
  #waiting: Buffer[] = [];
  #bytes = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
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
    this.#transport.write(packet, onWritten);
  }

  /** Forgets what waits: there is nobody to send it to. */
  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
  }

  #flush(): void {
    const [first, ...others] = this.#waiting;
    if (first === undefined) return;
    this.#waiting = [];
    this.#transport.write(others.length === 0 ? first : Buffer.concat([first, ...others], this.#bytes));
    this.#bytes = 0;
  }
}
