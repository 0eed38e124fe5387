import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { keyOf } from '../controller/store.ts';
import type { VmiKey, VmiStore } from '../controller/store.ts';
import { hasCode, VirtwireError } from '../errors.ts';
import { tryLock } from './file-lock.ts';

const SUFFIX = '.json';
const LOCK_TRIES = 500;
const LOCK_STEP_MS = 4;

/** File name of a VMI: `<namespace>_<name>.json`; neither part can hold an underscore. */
function vmiFileName(key: VmiKey): string {
  return `${key.replace('/', '_')}${SUFFIX}`;
}

function keyOfFile(file: string): VmiKey | undefined {
  return file.endsWith(SUFFIX) ? file.slice(0, -SUFFIX.length).replace('_', '/') : undefined;
}

/**
 * The VMIs of a node as files, one per VMI, indented for people. Several processes share them: a write takes the lock of
 * that file, compares resourceVersion and UID with what is stored, and replaces the file by rename.
 */
export class VmiFiles implements VmiStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o750 });
  }

  list(): readonly Vmi[] {
    return readdirSync(this.#directory)
      .sort()
      .flatMap((file) => {
        const key = keyOfFile(file);
        return (key === undefined ? undefined : this.get(key)) ?? [];
      });
  }

  get(key: VmiKey): Vmi | undefined {
    try {
      return parseVmiJson(readFileSync(this.#pathOf(key), 'utf8'));
    } catch (caught) {
      if (hasCode(caught, 'ENOENT')) return undefined;
      throw VirtwireError.from(caught, 'BadState', `cannot read ${this.#pathOf(key)}`);
    }
  }

  create(vmi: Vmi): Promise<Vmi> {
    return this.#locked(keyOf(vmi), (stored) => {
      if (stored !== undefined) throw refused('AlreadyExists', keyOf(vmi), 'exists');
      return withVersion(vmi, 1);
    });
  }

  update(vmi: Vmi): Promise<Vmi> {
    return this.#locked(keyOf(vmi), (stored) => {
      if (stored?.metadata.uid !== vmi.metadata.uid) throw refused('NotFound', keyOf(vmi), 'is gone');
      const { resourceVersion } = stored.metadata;
      if (resourceVersion !== vmi.metadata.resourceVersion) {
        throw refused('Conflict', keyOf(vmi), `was changed meanwhile: version ${resourceVersion ?? 'none'}`);
      }
      return withVersion(vmi, Number(resourceVersion) + 1);
    });
  }

  async remove(key: VmiKey): Promise<void> {
    using _lock = await this.#lock(key);
    rmSync(this.#pathOf(key), { force: true });
  }

  watch(listener: (key: VmiKey) => void): Disposable {
    const watcher = watch(this.#directory, (_event, file) => {
      const key = file === null ? undefined : keyOfFile(file);
      if (key !== undefined) listener(key);
    });
    return { [Symbol.dispose]: () => watcher.close() };
  }

  #pathOf(key: VmiKey): string {
    return join(this.#directory, vmiFileName(key));
  }

  async #lock(key: VmiKey): Promise<Disposable> {
    const file = `${this.#pathOf(key)}.lock`;
    for (let i = 0; i < LOCK_TRIES; i += 1) {
      const lock = tryLock(file, 'update');
      if (lock !== undefined) return lock;
      await sleep(LOCK_STEP_MS);
    }
    throw new VirtwireError('BadState', `cannot lock ${file}: another process holds it`);
  }

  async #locked(key: VmiKey, change: (stored: Vmi | undefined) => Vmi): Promise<Vmi> {
    using _lock = await this.#lock(key);
    const next = change(this.get(key));
    const path = this.#pathOf(key);
    writeFileSync(`${path}.new`, `${renderVmiJson(next, 2)}\n`, { mode: 0o640 });
    renameSync(`${path}.new`, path);
    return next;
  }
}

function withVersion(vmi: Vmi, version: number): Vmi {
  return { ...vmi, metadata: { ...vmi.metadata, resourceVersion: String(version) } };
}

function refused(code: 'AlreadyExists' | 'Conflict' | 'NotFound', key: VmiKey, what: string): VirtwireError {
  return new VirtwireError(code, `VMI ${key} ${what}`);
}
