import type { SharedVmiStore } from '@virtwire/handler';
import type { Vmi } from '@virtwire/vm-model';

const keyOf = ({ namespace, name }: Vmi['metadata']): string => `${namespace}/${name}`;

function refused(code: 'Conflict' | 'NotFound', text: string): Error {
  return Object.assign(new Error(text), { code });
}

/** VMIs in memory with the API server's rule for versions; the scenarios play the cluster by it. */
export class VmiStore implements SharedVmiStore {
  readonly #vmis = new Map<string, Vmi>();
  readonly #listeners = new Set<(key: string) => void>();
  #version = 0;

  list(): readonly Vmi[] {
    return structuredClone([...this.#vmis.values()]);
  }

  get(key: string): Vmi | undefined {
    return structuredClone(this.#vmis.get(key));
  }

  async update(vmi: Vmi): Promise<Vmi> {
    const key = keyOf(vmi.metadata);
    const stored = this.#vmis.get(key);
    if (stored?.metadata.uid !== vmi.metadata.uid) throw refused('NotFound', `${key} is gone`);
    if (stored.metadata.resourceVersion !== vmi.metadata.resourceVersion) {
      throw refused('Conflict', `${key} was changed meanwhile`);
    }
    return this.put(vmi);
  }

  /** Stores an object whatever its version. */
  put(vmi: Vmi): Vmi {
    this.#version += 1;
    const stored = structuredClone(vmi);
    stored.metadata.resourceVersion = String(this.#version);
    const key = keyOf(stored.metadata);
    this.#vmis.set(key, stored);
    this.#tell(key);
    return structuredClone(stored);
  }

  /** Changes an object as the cluster's controllers do. */
  change(key: string, edit: (vmi: Vmi) => void): void {
    const vmi = this.get(key);
    if (vmi === undefined) throw refused('NotFound', `no VMI ${key}`);
    edit(vmi);
    this.put(vmi);
  }

  remove(key: string): void {
    this.#vmis.delete(key);
    this.#tell(key);
  }

  watch(listener: (key: string) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  #tell(key: string): void {
    for (const listener of this.#listeners) queueMicrotask(() => listener(key));
  }
}
