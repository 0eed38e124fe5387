import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SharedVmiStore } from '../../src/index.ts';
import type { Vmi } from '@virtwire/vm-model';

function refused(code: string, text: string): Error {
  return Object.assign(new Error(text), { code });
}

/** VMIs as files of a directory, with the API server's rules for versions; one writer at a time is enough for tests. */
export class FileStore implements SharedVmiStore {
  readonly #directory: string;
  readonly #onWrite: (vmi: Vmi) => void;

  constructor(directory: string, onWrite: (vmi: Vmi) => void = () => undefined) {
    this.#directory = directory;
    this.#onWrite = onWrite;
    mkdirSync(directory, { recursive: true });
  }

  list(): readonly Vmi[] {
    return readdirSync(this.#directory).flatMap((file) => (file.endsWith('.json') ? (this.#read(file) ?? []) : []));
  }

  get(key: string): Vmi | undefined {
    return this.#read(`${key.replace('/', '_')}.json`);
  }

  async update(vmi: Vmi): Promise<Vmi> {
    const { namespace, name, resourceVersion, uid } = vmi.metadata;
    const stored = this.get(`${namespace}/${name}`);
    if (stored?.metadata.uid !== uid) throw refused('NotFound', `${name} is gone`);
    if (stored.metadata.resourceVersion !== resourceVersion) throw refused('Conflict', `${name} was changed meanwhile`);
    const next = { ...vmi, metadata: { ...vmi.metadata, resourceVersion: String(Number(resourceVersion) + 1) } };
    this.put(next);
    this.#onWrite(next);
    return next;
  }

  /** Stores as it is. */
  put(vmi: Vmi): void {
    const path = join(this.#directory, `${vmi.metadata.namespace}_${vmi.metadata.name}.json`);
    writeFileSync(`${path}.new`, JSON.stringify(vmi));
    renameSync(`${path}.new`, path);
  }

  /** Changes an object as someone else than the handler would, against its newest version. */
  change(key: string, edit: (vmi: Vmi) => void): void {
    const vmi = this.get(key);
    if (vmi === undefined) throw new Error(`no VMI ${key}`);
    edit(vmi);
    vmi.metadata.resourceVersion = String(Number(vmi.metadata.resourceVersion) + 1);
    this.put(vmi);
  }

  remove(key: string): void {
    rmSync(join(this.#directory, `${key.replace('/', '_')}.json`), { force: true });
  }

  watch(listener: (key: string) => void): Disposable {
    const watcher = watch(this.#directory, (_event, file) => {
      if (file?.endsWith('.json') === true) listener(file.slice(0, -'.json'.length).replace('_', '/'));
    });
    return { [Symbol.dispose]: () => watcher.close() };
  }

  #read(file: string): Vmi | undefined {
    try {
      return JSON.parse(readFileSync(join(this.#directory, file), 'utf8')) as Vmi;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }
}
