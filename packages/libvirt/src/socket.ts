import { connect as connectSocket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { OutgoingDescriptors } from './descriptors.ts';
import { LibvirtError } from './errors.ts';

const READ_BUFFER_BYTES = 64 * 1024;

/** What the connection needs of a byte transport. */
export interface Transport {
  /** Starts delivery; `onData` gets bytes that are valid during the call only, `onEnd` comes once, at last. */
  start(onData: (chunk: Buffer) => void, onEnd: (cause: Error | undefined) => void): void;
  /** Queues bytes; the callback comes when the kernel has taken them. */
  write(bytes: Uint8Array, onWritten?: (error?: Error | null) => void): void;
  /** Sends descriptors past the queue, which must be empty and stay so until this is over. */
  sendDescriptors(descriptors: OutgoingDescriptors, signal: AbortSignal): Promise<void>;
  /** Ends at once. */
  destroy(): void;
}

/**
 * Connects to a unix socket. Bytes are read into one buffer that is used again, which saves an allocation per packet.
 *
 * @throws {LibvirtError} `ConnectFailed` naming the socket.
 */
export function openUnixSocket(path: string, signal: AbortSignal): Promise<Transport> {
  return new Promise((resolve, reject) => {
    let onData: ((chunk: Buffer) => void) | undefined;
    const socket = connectSocket({
      path,
      signal,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES),
        callback: (bytes, buffer) => {
          onData?.((buffer as Buffer).subarray(0, bytes));
          return true;
        },
      },
    });
    const fail = (error: Error): void => {
      reject(LibvirtError.client('ConnectFailed', `connect to ${path}: ${error.message}`, { cause: error }));
    };
    socket.once('error', fail);
    socket.once('connect', () => {
      socket.off('error', fail);
      const transport = duplexTransport(socket);
      resolve({
        ...transport,
        start: (data, end) => {
          onData = data;
          transport.start(data, end);
        },
      });
    });
  });
}

/** Makes a transport of any Duplex: a pipe in memory, a tunnel. */
export function duplexTransport(stream: Duplex): Transport {
  let cause: Error | undefined;
  let onEnd: ((cause: Error | undefined) => void) | undefined;
  stream.on('error', (error) => {
    cause = error;
  });
  stream.on('end', () => onEnd?.(cause));
  stream.on('close', () => onEnd?.(cause));
  return {
    start: (data, end) => {
      onEnd = once(end);
      stream.on('data', data);
      if (stream.destroyed) onEnd(cause);
    },
    write: (bytes, onWritten) => {
      stream.write(bytes, onWritten);
    },
    sendDescriptors: (descriptors, signal) => descriptors.send(stream, signal),
    destroy: () => {
      stream.destroy();
    },
  };
}

function once(end: (cause: Error | undefined) => void): (cause: Error | undefined) => void {
  let done = false;
  return (cause) => {
    if (done) return;
    done = true;
    end(cause);
  };
}
