import { createRpcHost, type HostOptions, type RpcHost } from '../rpc-host.ts';
import { hostOptions, listenUnix, type ServeOptions } from '../server.ts';
import type { NotifyEntrance, NotifyHandlers, NotifyServer, PeerIdentity } from './api.ts';
import { notifyMethods } from './methods.ts';

/** Connections of one pipe (FM-13.7). A launcher has one, and for a moment a second one after a fault. */
const MAX_CONNECTIONS_PER_PIPE = 64;
/** A launcher sends one event after the other; each call may hold a message of the largest size in memory. */
const MAX_CALLS_PER_PIPE_CONNECTION = 16;

/**
 * Serves the handler's notify socket: the notify service and its info service, for peers of every release.
 *
 * Connections of a pipe are best handed over through an entrance, so that the handlers know whose they are.
 *
 * @param socketPath a file in its place is removed.
 * @throws {ProtoError} `ListenFailed`.
 */
export async function serveNotify(
  socketPath: string,
  handlers: NotifyHandlers,
  options: ServeOptions = {},
): Promise<NotifyServer> {
  const limits = hostOptions(options);
  const host = createRpcHost(notifyMethods(handlers, undefined, options.versions), limits);
  const server = await listenUnix(socketPath, host, limits);
  const entrances = new Set<RpcHost>();
  const stop: NotifyServer['stop'] = async (graceMs = 1_000) => {
    await Promise.all([server.stop(graceMs), ...Array.from(entrances, (entrance) => entrance.stop(graceMs))]);
    entrances.clear();
  };
  return {
    socketPath,
    get connectionCount() {
      return Array.from(entrances).reduce((sum, entrance) => sum + entrance.connectionCount, server.connectionCount);
    },
    stop,
    [Symbol.asyncDispose]: () => stop(),
    openEntrance: (identity) => {
      const entranceLimits = {
        ...limits,
        maxConnections: MAX_CONNECTIONS_PER_PIPE,
        maxCalls: MAX_CALLS_PER_PIPE_CONNECTION,
      };
      return openEntrance(handlers, identity, entranceLimits, entrances, options.versions);
    },
  };
}

function openEntrance(
  handlers: NotifyHandlers,
  identity: PeerIdentity,
  limits: HostOptions,
  entrances: Set<RpcHost>,
  versions: readonly number[] | undefined,
): NotifyEntrance {
  const host = createRpcHost(notifyMethods(handlers, identity, versions), limits);
  entrances.add(host);
  return {
    accept: (connection) => host.accept(connection),
    get connectionCount() {
      return host.connectionCount;
    },
    [Symbol.dispose]: () => {
      entrances.delete(host);
      void host.stop(0);
    },
  };
}
