import { readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessStat, unmount } from '@virtwire/host';
import { errorText, hasCode, VirtwireError } from '../errors.ts';
import type { RunTool } from '../machine/run-tool.ts';
import { deletePodNetwork } from '../sandbox/cni.ts';
import { removeDirectory } from './remove-directory.ts';
import type { Journal } from './journal.ts';
import type { JournalEntry, Resource } from './resource.ts';

type Undo = { readonly [K in Resource['kind']]: (resource: Extract<Resource, { kind: K }>) => Promise<void> | void };

const CGROUP_ROOT = '/sys/fs/cgroup';
const CGROUP_TRIES = 50;
const KILL_TRIES = 50;
/** Mounts on one path, one over the other. */
const MAX_MOUNTS = 8;
const STEP_MS = 100;

/** True when a tool says that what it should remove is not there. */
function isAbsent(caught: unknown): boolean {
  return /no such file|does not exist|cannot find device|not found|no such process/i.test(errorText(caught));
}

async function unlessAbsent(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (caught) {
    if (!isAbsent(caught)) throw caught;
  }
}

/** Every directory of the cgroup hierarchies that ends in `path`. */
function cgroupDirectories(path: string, root = CGROUP_ROOT): string[] {
  const hierarchies = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `${root}/${entry.name}`);
  return [root, ...hierarchies].map((hierarchy) => `${hierarchy}${path}`);
}

async function removeCgroup(path: string): Promise<void> {
  for (const directory of cgroupDirectories(path)) {
    for (let i = 0; ; i += 1) {
      try {
        rmdirSync(directory);
        break;
      } catch (caught) {
        if (hasCode(caught, 'ENOENT') || hasCode(caught, 'ENOTDIR')) break;
        // The last process of a cgroup leaves it a moment after it was reaped.
        if (!hasCode(caught, 'EBUSY') || i >= CGROUP_TRIES) throw caught;
        await sleep(STEP_MS);
      }
    }
  }
}

function isSameProcess(pid: number, startTicks: string): boolean {
  try {
    const stat = readProcessStat(pid);
    return String(stat.startTicks) === startTicks && stat.state !== 'Z';
  } catch {
    return false;
  }
}

async function killProcess(pid: number, startTicks: string): Promise<void> {
  for (let i = 0; i < KILL_TRIES && isSameProcess(pid, startTicks); i += 1) {
    process.kill(pid, 'SIGKILL');
    await sleep(STEP_MS);
  }
}

/** Others may have made namespaces meanwhile: then the directory stays. */
function removeIfEmpty(path: string): void {
  try {
    if (readdirSync(path).length > 0) return;
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return;
    throw caught;
  }
  unmountAll(path);
  rmdirSync(path);
}

function unmountAll(path: string): void {
  for (let i = 0; i < MAX_MOUNTS && unmount(path); i += 1);
}

function restoreSysctl(path: string, before: string): void {
  if (readFileSync(path, 'utf8') !== before) writeFileSync(path, before);
}

/** How each kind of resource is removed. Removing what is not there is no error. */
function undoTable(run: RunTool): Undo {
  return {
    directory: ({ path }) => removeDirectory(path),
    mount: ({ path }) => unmountAll(path),
    netns: ({ name }) => unlessAbsent(run('ip', ['netns', 'delete', name])),
    netnsRoot: ({ path }) => removeIfEmpty(path),
    cni: (resource) => deletePodNetwork(run, resource),
    link: ({ name }) => unlessAbsent(run('ip', ['link', 'delete', name])),
    nft: ({ family, table }) => unlessAbsent(run('nft', ['delete', 'table', family, table])),
    sysctl: ({ path, before }) => restoreSysctl(path, before),
    cgroup: ({ path }) => removeCgroup(path),
    container: ({ id, runcRoot }) => unlessAbsent(run('runc', ['--root', runcRoot, 'delete', '--force', id])),
    process: ({ pid, startTicks }) => killProcess(pid, startTicks),
  };
}

/**
 * Removes everything that an owner has made, last made first, and goes on past what cannot be removed.
 *
 * @throws {VirtwireError} `BadState` that names what is left; it stays in the journal for the next try.
 */
export async function releaseOwner(journal: Journal, run: RunTool, owner: string): Promise<void> {
  const left: string[] = [];
  for (const entry of [...journal.entries(owner)].reverse()) {
    try {
      await releaseEntry(journal, run, entry);
    } catch (caught) {
      left.push(`${entry.resource.kind}: ${errorText(caught)}`);
    }
  }
  if (left.length > 0) throw new VirtwireError('BadState', `cannot remove all of ${owner}: ${left.join('; ')}`);
}

/** Removes one thing that was made. */
export async function releaseEntry(journal: Journal, run: RunTool, entry: JournalEntry): Promise<void> {
  const undo = undoTable(run)[entry.resource.kind] as (resource: Resource) => Promise<void> | void; // same key
  await undo(entry.resource);
  journal.forget(entry);
}
