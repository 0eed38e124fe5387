import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { HostError } from '../errors.ts';
import { Descriptor } from './descriptor.ts';
import { trySendDescriptor } from './socket-message.ts';

const SEND_LIMIT_MS = 10_000;
const RETRY_MS = 20;

/** Copies of descriptors on their way to another process; they are closed when this is disposed of. */
export interface OutgoingDescriptors extends Disposable {
  /**
   * Sends one zero byte with each copy, in messages of their own, past what Node does. All that was written to the
   * stream must be with the kernel, and nothing may be written until this is over.
   *
   * @param stream a unix socket of Node's, connected.
   * @throws {HostError} `MessageTimeout` when the peer has not read for 10 s, else `Syscall`; some may have been sent.
   */
  send(stream: Duplex, signal: AbortSignal): Promise<void>;
}

/**
 * Copies descriptors at once, so that their owner may close them whenever it likes.
 *
 * @throws {HostError} `Syscall` when one is not open or the process has too many.
 */
export function copyDescriptors(descriptors: readonly number[]): OutgoingDescriptors {
  const copies: Descriptor[] = [];
  const dispose = (): void => {
    for (const copy of copies) copy[Symbol.dispose]();
  };
  try {
    for (const fd of descriptors) copies.push(Descriptor.copyOf(fd));
  } catch (caught) {
    dispose();
    throw caught;
  }
  return {
    async send(stream, signal) {
      const giveUpAtMs = performance.now() + SEND_LIMIT_MS;
      for (const copy of copies) {
        // Either end may close, and its number be another's, in each pause.
        while (!trySendDescriptor(socketOf(stream), copy.fd)) {
          if (performance.now() >= giveUpAtMs) throw new HostError('MessageTimeout', 'nobody reads the descriptors');
          await delay(RETRY_MS, undefined, { signal });
        }
      }
    },
    [Symbol.dispose]: dispose,
  };
}

/** Node keeps a socket's descriptor in its handle, and offers no other way to it. */
function socketOf(stream: Duplex): number {
  const handle = '_handle' in stream ? stream._handle : undefined;
  const fd = typeof handle === 'object' && handle !== null && 'fd' in handle ? handle.fd : undefined;
  if (typeof fd === 'number' && fd >= 0) return fd;
  throw new HostError('Syscall', 'the stream is no open socket, and takes no descriptors', { errno: 'ENOTSOCK' });
}
