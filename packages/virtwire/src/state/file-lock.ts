import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readProcessStat } from '@virtwire/host';
import { hasCode, VirtwireError } from '../errors.ts';

/** The process that holds a lock file. */
export interface LockHolder {
  readonly pid: number;
  readonly startTicks: string;
  /** The command as typed, to tell people. */
  readonly command: string;
}

function isAlive({ pid, startTicks }: LockHolder): boolean {
  try {
    const stat = readProcessStat(pid);
    return stat.state !== 'Z' && String(stat.startTicks) === startTicks;
  } catch {
    return false;
  }
}

/** Who holds the lock; undefined when nobody does, also when its holder was killed. */
export function lockHolder(file: string): LockHolder | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return undefined;
    throw VirtwireError.from(caught, 'BadState', `cannot read ${file}`);
  }
  const holder = JSON.parse(text) as LockHolder;
  return isAlive(holder) ? holder : undefined;
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
    for (let i = 0; i < 3; i += 1) {
      try {
        linkSync(draft, file);
        return { [Symbol.dispose]: () => rmSync(file, { force: true }) };
      } catch (caught) {
        if (!hasCode(caught, 'EEXIST')) throw VirtwireError.from(caught, 'BadState', `cannot lock ${file}`);
      }
      if (lockHolder(file) !== undefined) return undefined;
      rmSync(file, { force: true });
    }
    return undefined;
  } finally {
    rmSync(draft, { force: true });
  }
}
