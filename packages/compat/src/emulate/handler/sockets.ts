import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Vmi } from '@virtwire/vm-model';

import type { HandlerFacts } from '../facts/line-facts.ts';

/** A launcher that a handler has talked to, as its file says. @source wire.md 1 Ghost records */
export interface GhostRecord {
  readonly name: string;
  readonly namespace: string;
  readonly socketFile: string;
  readonly uid: string;
}

/** Where launchers and the records of them are on a node. */
export interface SocketDirs {
  readonly podsDir: string;
  /** `<private>/ghost-records`. */
  readonly recordsDir: string;
  readonly nodeName: string;
}

const SOCKET_PATH = 'volumes/kubernetes.io~empty-dir/sockets/launcher-sock';

/**
 * Finds the one launcher socket of a VMI.
 *
 * @param fallbackPod the pod to look at for a VMI whose status lists none.
 * @throws {Error} with the handler's words when there is none, or more than one.
 * @source releases.json eras.handlerCmdSocketLookup; wire.md 1
 */
export function findSocket(dirs: SocketDirs, facts: HandlerFacts, vmi: Vmi, fallbackPod: string): string {
  const active = (vmi.status as { readonly activePods?: Readonly<Record<string, string>> } | undefined)?.activePods;
  const isOurs = (node: string): boolean => facts.socketLookup.value !== 'podsOfNode' || node === dirs.nodeName;
  const pods = Object.entries(active ?? { [fallbackPod]: dirs.nodeName });
  const paths = pods.filter(([, node]) => isOurs(node)).map(([pod]) => join(dirs.podsDir, pod, SOCKET_PATH));
  const [found, second] = paths.filter((path) => existsSync(path));
  const { namespace, name, uid } = vmi.metadata;
  if (found === undefined) throw new Error(`No command socket found for vmi ${uid}`);
  if (second === undefined) return found;
  throw new Error(`Found multiple sockets for vmi ${namespace}/${name}. waiting for only one to exist`);
}

/** Writes a ghost record; it is there before the first connection. */
export function writeRecord(dirs: SocketDirs, record: GhostRecord): void {
  mkdirSync(dirs.recordsDir, { recursive: true, mode: 0o755 });
  writeFileSync(join(dirs.recordsDir, record.uid), JSON.stringify(record), { mode: 0o600 });
}

export function removeRecord(dirs: SocketDirs, uid: string): void {
  rmSync(join(dirs.recordsDir, uid), { force: true });
}

/**
 * The launchers that a listing asks: those of the ghost records, and up to v1.4 every socket below the pods directory.
 *
 * @source releases.json eras.handlerSocketsForDomainList
 */
export function listSockets(dirs: SocketDirs, facts: HandlerFacts): readonly Partial<GhostRecord>[] {
  const records = namesIn(dirs.recordsDir).flatMap((name) => readRecord(join(dirs.recordsDir, name)));
  if (facts.domainList.value === 'records') return records;
  const known = new Set(records.map(({ socketFile }) => socketFile));
  const sockets = namesIn(dirs.podsDir).map((pod) => join(dirs.podsDir, pod, SOCKET_PATH));
  const others = sockets.filter((path) => existsSync(path) && !known.has(path));
  return [...records, ...others.map((socketFile) => ({ socketFile }))];
}

function namesIn(dir: string): readonly string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}

function readRecord(path: string): readonly GhostRecord[] {
  try {
    return [JSON.parse(readFileSync(path, 'utf8')) as GhostRecord];
  } catch {
    return [];
  }
}
