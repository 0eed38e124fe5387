import * as path from 'node:path';
import { errnoOf, SafePath } from '@virtwire/host';
import { HandlerError } from '../errors.ts';
import type { Vmi } from '../model.ts';

const SOCKETS_DIR = 'volumes/kubernetes.io~empty-dir/sockets';
/** Name of a launcher's command socket. */
export const LAUNCHER_SOCKET = 'launcher-sock';
/** Marker that the watchdog leaves beside a socket that has been dead for too long. */
const UNRESPONSIVE_MARKER = 'launcher-unresponsive';

const MARKER_MODE = 0o644;

/** Where to look for launcher sockets. */
export interface SocketPlace {
  readonly podsDir: string;
  /** Pods of other nodes are skipped; empty = any node. */
  readonly nodeName: string;
}

/** Directory of a pod's launcher sockets. */
function socketsDirectory(podsDir: string, podUid: string): string {
  return path.join(podsDir, podUid, SOCKETS_DIR);
}

function existsUnlinked(podsDir: string, relative: string): boolean {
  try {
    using root = SafePath.openRoot(podsDir);
    using found = root.join(relative);
    return found.fd >= 0;
  } catch {
    return false;
  }
}

function podUids(vmi: Vmi, nodeName: string | undefined): readonly string[] {
  const pods = Object.entries(vmi.status?.activePods ?? {});
  return pods.filter(([, node]) => !nodeName || node === nodeName).map(([uid]) => uid);
}

/**
 * Finds the command socket of a VMI's launcher on this node, through the pods that virt-controller lists.
 *
 * @throws {HandlerError} `LauncherUnreachable` when there is none, or more than one.
 * @source KubeVirt v1.9.0 pkg/virt-handler/cmd-client/client.go:223
 */
export function findLauncherSocket(vmi: Vmi, { podsDir, nodeName }: SocketPlace): string {
  const found = podUids(vmi, nodeName).filter((uid) =>
    existsUnlinked(podsDir, `${uid}/${SOCKETS_DIR}/${LAUNCHER_SOCKET}`),
  );
  const [uid, ...others] = found;
  const { namespace, name } = vmi.metadata;
  if (uid === undefined) {
    throw new HandlerError('LauncherUnreachable', `No command socket found for vmi ${vmi.metadata.uid}`);
  }
  if (others.length > 0) {
    const text = `Found multiple sockets for vmi ${namespace}/${name}. waiting for only one to exist`;
    throw new HandlerError('LauncherUnreachable', text);
  }
  return path.join(socketsDirectory(podsDir, uid), LAUNCHER_SOCKET);
}

/** Socket directories of the VMI's pods that are there, whichever node they belong to. */
export function podSocketDirectories(vmi: Vmi, podsDir: string): readonly string[] {
  return podUids(vmi, undefined)
    .filter((uid) => existsUnlinked(podsDir, `${uid}/${SOCKETS_DIR}`))
    .map((uid) => socketsDirectory(podsDir, uid));
}

/**
 * True when a socket's launcher is known to be dead: directory or socket gone, or marked by the watchdog.
 *
 * Nothing is dialled.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/cmd-client/client.go (IsSocketUnresponsive)
 */
export function isSocketUnresponsive(socketFile: string): boolean {
  let directory: SafePath;
  try {
    directory = SafePath.openRoot(path.dirname(socketFile));
  } catch (error) {
    return errnoOf(error) === 'ENOENT';
  }
  using held = directory;
  try {
    return held.has(UNRESPONSIVE_MARKER) || !held.has(path.basename(socketFile));
  } catch {
    return true;
  }
}

/** Leaves the marker beside a dead socket; a pod directory that is gone is no error (FM-3.6). */
export function markUnresponsive(socketFile: string): void {
  try {
    using directory = SafePath.openRoot(path.dirname(socketFile));
    directory.touch(UNRESPONSIVE_MARKER, MARKER_MODE);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno !== 'ENOENT' && errno !== 'EEXIST' && errno !== 'ENOTDIR') throw error;
  }
}
