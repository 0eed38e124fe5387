import type { Socket } from 'node:dgram';
import type { Logger } from '@virtwire/telemetry';

/** Where a message came from or goes to. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** An answer and its addressee. */
export interface Answer {
  readonly to: Endpoint;
  readonly payload: Buffer;
}

/** Answers one message; undefined for what is not answered. */
export type Answerer = (message: Buffer, from: Endpoint) => Answer | undefined;

/** A server that listens. */
export interface DhcpServer {
  close(): Promise<void>;
}

/** Answers what a socket receives. Nothing that a guest sends ends the server. */
export function serveDatagrams(
  socket: Socket,
  answer: Answerer,
  log: Logger,
  onFailure: (error: Error) => void,
): DhcpServer {
  socket.on('message', (message, from) => {
    const reply = answer(message, from);
    if (reply === undefined) return;
    // A tap whose guest is gone refuses packets for a moment; the client asks again.
    socket.send(reply.payload, reply.to.port, reply.to.address, (error) => {
      if (error !== null) log.debug({ reason: error }, 'a DHCP answer was not sent');
    });
  });
  socket.on('error', onFailure);
  socket.unref();
  return {
    close: () =>
      new Promise((resolve) => {
        socket.close(() => {
          resolve();
        });
      }),
  };
}
