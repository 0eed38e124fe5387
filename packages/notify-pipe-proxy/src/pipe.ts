import { randomUUID } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';

import { listenUnix, PidHandle, type SafePath } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';

import { PipeError } from './errors.ts';
import type { PipeSink } from './sink.ts';

/** Where a launcher looks for its pipe. @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go */
export const PIPE_DIRECTORY = '/var/run/kubevirt';
export const PIPE_SOCKET_NAME = 'domain-notify-pipe.sock';

/** Connections of one pipe at a time (FM-13.7); the next one is closed at once. */
const MAX_CONNECTIONS = 64;

/** What a pipe needs from the handler. */
export interface NotifyPipeDeps {
  /** Carries the fields of the pipe's VMI. */
  readonly log: Logger;
  /** Gets every connection of the pipe; it knows which VMI that is. */
  readonly sink: PipeSink;
}

/** Where a pipe goes and to whom it belongs. */
export interface NotifyPipeOptions {
  /** A process in the pod's mount namespace, or that namespace's root directory. */
  readonly pod: { readonly pid: number } | { readonly root: SafePath };
  /** Absolute path of the directory as the pod sees it; links are followed inside the pod's root alone. */
  readonly directory?: string | undefined;
  readonly socketName?: string | undefined;
  /** Owner of the socket: 107:107 for a launcher that is not root. Left as it is when absent. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
}

/** A socket inside a pod that leads to the handler. */
export interface NotifyPipe extends AsyncDisposable {
  /** Where the pod sees it. For messages only: the pod can put anything at that path. */
  readonly pathInPod: string;
  readonly connectionCount: number;
  /** Says whether the pod's directory still holds this very socket. */
  isInPlace(): boolean;
  /** Removes the socket, if it is still this one. Connections that are open stay with whoever took them. */
  close(): Promise<void>;
}

/**
 * Puts a socket into a pod and hands its connections to a sink. An older socket of that name is replaced.
 *
 * The socket gets its owner before it gets its name, so that the launcher never meets one that refuses it.
 *
 * @throws {PipeError} `PodGone`, `InjectFailed` or `OwnerFailed`.
 * @source KubeVirt v1.9.0 pkg/virt-handler/notify-server/pipe/pipe.go
 */
export async function createNotifyPipe(deps: NotifyPipeDeps, options: NotifyPipeOptions): Promise<NotifyPipe> {
  const name = options.socketName ?? PIPE_SOCKET_NAME;
  await using stack = new AsyncDisposableStack();
  const directory = stack.use(openDirectory(options));
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  // Not awaited: that would be until the last connection ends, and those are not ours any more.
  stack.defer(() => void server.close());
  using socket = await listenUnderOtherName(server, directory, options.owner, name);
  const { ino } = socket.stat();
  const connections = acceptConnections(server, deps);
  const isInPlace = (): boolean => inodeOf(directory, name) === ino;
  stack.defer(() => {
    deps.log.info('closing notify pipe listener for vmi');
    if (isInPlace()) directory.unlink(name);
  });
  const resources = stack.move();
  return {
    pathInPod: `${options.directory ?? PIPE_DIRECTORY}/${name}`,
    get connectionCount() {
      return connections.size;
    },
    isInPlace,
    close: () => resources.disposeAsync(),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

function openDirectory(options: NotifyPipeOptions): SafePath {
  const directory = options.directory ?? PIPE_DIRECTORY;
  if (!('pid' in options.pod)) return resolveDirectory(options.pod.root, directory);
  using process = openProcess(options.pod.pid);
  using root = process.root();
  return resolveDirectory(root, directory);
}

function openProcess(pid: number): PidHandle {
  try {
    return PidHandle.open(pid);
  } catch (caught) {
    throw PipeError.from(caught, 'PodGone', `could not enter the pod of process ${pid}`);
  }
}

function resolveDirectory(root: SafePath, directory: string): SafePath {
  try {
    return root.resolve(directory);
  } catch (caught) {
    throw PipeError.from(caught, 'InjectFailed', 'failed to create unix socket for proxy service');
  }
}

async function listenUnderOtherName(
  server: Server,
  directory: SafePath,
  owner: NotifyPipeOptions['owner'],
  name: string,
): Promise<SafePath> {
  const temporary = `.${name}.${randomUUID()}`;
  const socket = await listenUnix(server, directory, temporary).catch((caught: unknown) => {
    throw PipeError.from(caught, 'InjectFailed', 'failed to create unix socket for proxy service');
  });
  try {
    setOwner(socket, owner);
    rename(directory, temporary, name);
    return socket;
  } catch (caught) {
    socket[Symbol.dispose]();
    throw caught;
  }
}

function setOwner(socket: SafePath, owner: NotifyPipeOptions['owner']): void {
  if (owner === undefined) return;
  try {
    socket.chown(owner.uid, owner.gid);
  } catch (caught) {
    throw PipeError.from(caught, 'OwnerFailed', 'unable to change ownership for domain notify');
  }
}

function rename(directory: SafePath, temporary: string, name: string): void {
  try {
    // A socket does not replace a directory.
    if (isDirectory(directory, name)) directory.rmdir(name);
    directory.rename(temporary, name);
  } catch (caught) {
    throw PipeError.from(caught, 'InjectFailed', 'failed to create unix socket for proxy service');
  }
}

function isDirectory(directory: SafePath, name: string): boolean {
  try {
    using found = directory.join(name);
    return found.isDirectory();
  } catch {
    return false;
  }
}

function inodeOf(directory: SafePath, name: string): number | undefined {
  try {
    using found = directory.join(name);
    return found.stat().ino;
  } catch {
    return undefined;
  }
}

function acceptConnections(server: Server, deps: NotifyPipeDeps): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  server.on('error', (error) => deps.log.error({ reason: error }, 'Domain pipe accept error encountered.'));
  server.on('connection', (connection) => {
    if (connections.size >= MAX_CONNECTIONS) {
      deps.log.warn({ connections: connections.size }, 'refused a notify pipe connection: too many are open');
      connection.destroy();
      return;
    }
    connections.add(connection);
    connection.once('close', () => connections.delete(connection));
    deps.log.info('Accepted new notify pipe connection');
    deps.sink(connection);
  });
  return connections;
}
