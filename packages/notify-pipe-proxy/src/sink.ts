import { connect, type Socket } from 'node:net';

import type { Logger } from '@virtwire/telemetry';

import { splice } from './splice.ts';

/**
 * Takes over a connection that a launcher has made to its pipe, with nothing read from it yet. Whoever takes it closes
 * it.
 */
export type PipeSink = (connection: Socket) => void;

/**
 * A sink that dials a unix socket for each connection and copies bytes both ways. When the dial fails, the connection
 * is closed at once: its launcher then tries again.
 */
export function createProxySink(log: Logger, targetSocket: string): PipeSink {
  return (connection) => {
    const target = connect({ path: targetSocket, allowHalfOpen: true });
    const refuse = (error: Error): void => {
      log.error({ reason: error, target: targetSocket }, 'error connecting for proxy connection');
      connection.destroy();
    };
    target.once('error', refuse);
    connection.once('close', () => target.connecting && target.destroy());
    target.once('connect', () => {
      target.off('error', refuse);
      void splice(connection, target).then(() => log.debug('gracefully closed notify pipe connection'));
    });
  };
}
