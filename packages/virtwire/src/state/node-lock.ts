import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { VirtwireError } from '../errors.ts';
import { lockHolder, tryLock } from './file-lock.ts';

/**
 * Takes a state directory for this process; only one may manage it.
 *
 * @throws {VirtwireError} `AlreadyRunning` that names the process that holds it.
 */
export function takeNodeLock(file: string, command: string): Disposable {
  mkdirSync(dirname(file), { recursive: true });
  const lock = tryLock(file, command);
  if (lock !== undefined) return lock;
  const holder = lockHolder(file);
  const who = holder === undefined ? 'another process' : `"${holder.command}" (process ${holder.pid})`;
  const remedy = 'stop it, or use another --state-dir';
  throw new VirtwireError('AlreadyRunning', `${who} runs on ${dirname(file)}: ${remedy}`);
}
