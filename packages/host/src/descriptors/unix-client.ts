import { setTimeout as delay } from 'node:timers/promises';
import { HostError } from '../errors.ts';
import { describeErrno, libc } from '../libc.ts';
import { dialUnix } from '../paths/dial-unix.ts';
import { Descriptor } from './descriptor.ts';
import type { SocketMessage } from './socket-message.ts';
import { tryReceiveMessage } from './socket-message.ts';

const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const FIRST_RETRY_MS = 1;
const MAX_RETRY_MS = 20;

/** How much a message may bring, and how long it may take to come. */
export interface MessageLimits {
  readonly dataBytes: number;
  /** A descriptor takes 4 bytes, all of them together 16 more. */
  readonly controlBytes: number;
  readonly limitMs: number;
}

/** A connection to a unix socket whose peer passes descriptors, which Node's own sockets drop. */
export class UnixClient implements Disposable {
  readonly #socket: Descriptor;
  readonly #path: string;

  private constructor(fd: number, path: string) {
    this.#socket = new Descriptor(fd);
    this.#path = path;
  }

  /**
   * Connects.
   *
   * @param path nobody but the own side can change it: links are followed.
   * @throws {HostError} `Syscall` when nobody listens, `ConnectTimeout` when the backlog stays full for that long.
   */
  static async connect(path: string, limitMs: number): Promise<UnixClient> {
    return new UnixClient(await dialUnix(path, path, limitMs), path);
  }

  /**
   * Waits for one message; what it has beyond the limits is lost, and descriptors among it are closed by the kernel.
   *
   * @throws {HostError} `MessageTimeout` when none comes in time, else `Syscall`
   */
  async receive(limits: MessageLimits): Promise<SocketMessage> {
    const giveUpAtMs = performance.now() + limits.limitMs;
    for (let pauseMs = FIRST_RETRY_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_RETRY_MS)) {
      const message = tryReceiveMessage(this.#socket.fd, limits);
      if (message !== undefined) return message;
      if (performance.now() >= giveUpAtMs) {
        throw new HostError('MessageTimeout', `${this.#path}: no message came within ${limits.limitMs} ms`);
      }
      await delay(pauseMs);
    }
  }

  /**
   * Sends a few bytes, which a peer that reads at all has room for.
   *
   * @throws {HostError} `Syscall`
   */
  send(bytes: Buffer): void {
    if (libc().send(this.#socket.fd, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL) === bytes.length) return;
    const { name, text } = describeErrno(libc().errno());
    throw new HostError('Syscall', `send to ${this.#path}: ${text}`, { errno: name });
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }
}
