import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from '../errors.ts';

/** One event about a VMI, as Kubernetes would keep it. */
export interface VmEvent {
  readonly at: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly uid: string;
}

/** Events of a VM past this go into a second file; the one before that goes. */
const MAX_BYTES = 64 * 1024;

/** The events of a node's VMs, one file per VM and at most two of them. */
export interface EventFiles {
  append(key: string, event: VmEvent): void;
  /** Events of a VM, the oldest first. */
  read(key: string): readonly VmEvent[];
  remove(key: string): void;
}

function readLines(file: string): VmEvent[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return [];
    throw caught;
  }
  // The last line may be on its way into the file.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as VmEvent);
}

/** Keeps events in a directory. */
export function openEventFiles(directory: string): EventFiles {
  const fileOf = (key: string): string => join(directory, `${key.replace('/', '_')}.jsonl`);
  return {
    append(key, event) {
      mkdirSync(directory, { recursive: true, mode: 0o750 });
      const file = fileOf(key);
      if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_BYTES) renameSync(file, `${file}.1`);
      appendFileSync(file, `${JSON.stringify(event)}\n`);
    },
    read: (key) => [`${fileOf(key)}.1`, fileOf(key)].flatMap(readLines),
    remove(key) {
      for (const file of [fileOf(key), `${fileOf(key)}.1`]) rmSync(file, { force: true });
    },
  };
}
