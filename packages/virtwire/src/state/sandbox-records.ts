import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from '../errors.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** A sandbox and the VM that it is for, as kept on disk so that a restarted node finds it again. */
export interface SandboxRecord extends Sandbox {
  readonly vmiUid: string;
  readonly namespace: string;
  readonly name: string;
  /** True for a VM that goes on when the process that started it ends (`virtwire node`). */
  readonly keep: boolean;
}

/** The records of a node, one small file per VM. */
export interface SandboxRecords {
  read(vmiUid: string): SandboxRecord | undefined;
  list(): readonly SandboxRecord[];
  write(record: SandboxRecord): void;
  remove(vmiUid: string): void;
}

/** Keeps records in a directory. */
export function openSandboxRecords(directory: string): SandboxRecords {
  const fileOf = (vmiUid: string): string => join(directory, `${vmiUid}.json`);
  const read = (vmiUid: string): SandboxRecord | undefined => {
    try {
      return JSON.parse(readFileSync(fileOf(vmiUid), 'utf8')) as SandboxRecord;
    } catch (caught) {
      if (hasCode(caught, 'ENOENT')) return undefined;
      throw caught;
    }
  };
  return {
    read,
    list() {
      let names: string[];
      try {
        names = readdirSync(directory);
      } catch (caught) {
        if (hasCode(caught, 'ENOENT')) return [];
        throw caught;
      }
      const uids = names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
      return uids.flatMap((uid) => read(uid) ?? []);
    },
    write(record) {
      mkdirSync(directory, { recursive: true, mode: 0o750 });
      const file = fileOf(record.vmiUid);
      writeFileSync(`${file}.new`, JSON.stringify(record, null, 2));
      renameSync(`${file}.new`, file);
    },
    remove: (vmiUid) => rmSync(fileOf(vmiUid), { force: true }),
  };
}
