import { createHash } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readProcessStat } from '@virtwire/host';
import { hasCode, VirtwireError } from '../errors.ts';

/** The process that holds a lock file. */
export interface LockHolder {
  readonly pid: number;
  readonly startTicks: string;
  /** The command as typed, to tell people. */
  readonly command: string;
}

/** A lock that is given back between two looks is tried for again. */
const TRIES = 3;
const ID_CHARS = 12;

function isAlive({ pid, startTicks }: LockHolder): boolean {
  try {
    const stat = readProcessStat(pid);
    return stat.state !== 'Z' && String(stat.startTicks) === startTicks;
  } catch {
    return false;
  }
}

function readLock(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return undefined;
    throw VirtwireError.from(caught, 'BadState', `cannot read ${file}`);
  }
}

/** The living process that a lock's text names. A text that a crash of the machine damaged names none. */
function livingHolder(text: string): LockHolder | undefined {
  let holder: Partial<LockHolder> | null;
  try {
    holder = JSON.parse(text) as Partial<LockHolder> | null;
  } catch {
    return undefined;
  }
  const { pid, startTicks, command = '' } = holder ?? {};
  if (typeof pid !== 'number' || typeof startTicks !== 'string') return undefined;
  return isAlive({ pid, startTicks, command }) ? { pid, startTicks, command } : undefined;
}

/** Who holds the lock; undefined when nobody does, also when its holder was killed. */
export function lockHolder(file: string): LockHolder | undefined {
  const text = readLock(file);
  return text === undefined ? undefined : livingHolder(text);
}

/**
 * Takes a lock file for this process, from a killed holder too. The file appears whole or not at all.
 *
 * @returns undefined when a living process holds it.
 */
export function tryLock(file: string, command: string): Disposable | undefined {
  const own: LockHolder = { pid: process.pid, startTicks: String(readProcessStat(process.pid).startTicks), command };
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(own));
  try {
    return takeLock(file, draft, command) ? { [Symbol.dispose]: () => rmSync(file, { force: true }) } : undefined;
  } finally {
    rmSync(draft, { force: true });
  }
}

function takeLock(file: string, draft: string, command: string): boolean {
  for (let i = 0; i < TRIES; i += 1) {
    try {
      linkSync(draft, file);
      return true;
    } catch (caught) {
      if (!hasCode(caught, 'EEXIST')) throw VirtwireError.from(caught, 'BadState', `cannot lock ${file}`);
    }
    const stale = readLock(file);
    if (stale === undefined) continue; // given back just now
    return livingHolder(stale) === undefined && replaceStale(file, draft, stale, command);
  }
  return false;
}

/**
 * Replaces the lock of a dead holder. Several processes may have seen the same one: who may replace it is decided by a
 * lock named after that holder's text, under which the text is read again; once replaced it is another, for everybody.
 */
function replaceStale(file: string, draft: string, stale: string, command: string): boolean {
  const id = createHash('sha256').update(stale).digest('hex').slice(0, ID_CHARS);
  using right = tryLock(`${file}.${id}`, command);
  if (right === undefined || readLock(file) !== stale) return false;
  renameSync(draft, file);
  return true;
}
