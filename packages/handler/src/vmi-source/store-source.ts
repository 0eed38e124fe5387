import type { Logger } from '@virtwire/telemetry';
import { errorText, hasErrorCode, HandlerError } from '../errors.ts';
import { objectKey } from '../model.ts';
import type { Vmi } from '../model.ts';
import type { VmiKey, VmiSource, VmiSourceEvent } from './source.ts';

/**
 * A set of VMIs that others write to as well: a directory of files, or an API server's.
 *
 * Every object carries `metadata.resourceVersion`; an update with an old one rejects with an error of code `Conflict`,
 * one of an object that is gone with `NotFound`.
 */
export interface SharedVmiStore {
  list(): readonly Vmi[];
  get(key: VmiKey): Vmi | undefined;
  update(vmi: Vmi): Promise<Vmi>;
  /** Calls `listener` with the key of every VMI that changed, by whomever. */
  watch(listener: (key: VmiKey) => void): Disposable;
}

/** What a source over a shared store needs. */
export interface StoreSourceDeps {
  readonly store: SharedVmiStore;
  readonly log: Logger;
}

const NODE_LABEL = 'kubevirt.io/nodeName';

/** The VMIs of one node in a shared store, kept in memory. */
class StoreSource implements VmiSource, Disposable {
  readonly synced = Promise.resolve();
  readonly #deps: StoreSourceDeps;
  readonly #nodeName: string;
  readonly #known = new Map<VmiKey, Vmi>();
  readonly #listeners = new Set<(event: VmiSourceEvent) => void>();
  readonly #watch: Disposable;

  constructor(deps: StoreSourceDeps, nodeName: string) {
    this.#deps = deps;
    this.#nodeName = nodeName;
    this.#watch = deps.store.watch((key) => this.#refresh(key));
    for (const vmi of deps.store.list()) this.#known.set(objectKey(vmi.metadata), vmi);
  }

  list(): readonly Vmi[] {
    return [...this.#known.values()].filter((vmi) => this.#isOurs(vmi));
  }

  get(key: VmiKey): Vmi | undefined {
    const vmi = this.#known.get(key);
    return vmi !== undefined && this.#isOurs(vmi) ? vmi : undefined;
  }

  getAnywhere(key: VmiKey): Vmi | undefined {
    return this.#known.get(key);
  }

  watch(listener: (event: VmiSourceEvent) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async update(vmi: Vmi): Promise<Vmi> {
    try {
      const stored = await this.#deps.store.update(vmi);
      this.#apply(objectKey(stored.metadata), stored);
      return stored;
    } catch (error) {
      this.#refresh(objectKey(vmi.metadata));
      const code = (['Conflict', 'NotFound'] as const).find((one) => hasErrorCode(error, one));
      if (code === undefined) throw error;
      throw new HandlerError(code, errorText(error), { cause: error });
    }
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]();
    this.#listeners.clear();
  }

  #isOurs(vmi: Vmi): boolean {
    return vmi.metadata.labels?.[NODE_LABEL] === this.#nodeName;
  }

  #refresh(key: VmiKey): void {
    try {
      this.#apply(key, this.#deps.store.get(key));
    } catch (error) {
      this.#deps.log.warn({ reason: errorText(error) }, `cannot read VMI ${key}, keeping what was known`);
    }
  }

  #apply(key: VmiKey, vmi: Vmi | undefined): void {
    const old = this.#known.get(key);
    if (vmi === undefined) this.#known.delete(key);
    else this.#known.set(key, vmi);
    const isSame =
      old?.metadata.uid === vmi?.metadata.uid && old?.metadata.resourceVersion === vmi?.metadata.resourceVersion;
    if (isSame) return;
    const was = old !== undefined && this.#isOurs(old) ? old : undefined;
    const is = vmi !== undefined && this.#isOurs(vmi) ? vmi : undefined;
    if (was !== undefined && was.metadata.uid !== is?.metadata.uid) this.#tell({ type: 'deleted', vmi: was });
    if (is === undefined) return;
    if (was?.metadata.uid === is.metadata.uid) this.#tell({ type: 'modified', vmi: is, old: was });
    else this.#tell({ type: 'added', vmi: is });
  }

  #tell(event: VmiSourceEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/**
 * The VMIs of one node, from a store that the node's controller writes to as well.
 *
 * Changes come as the store reports them; an own update is visible at once.
 */
export function createStoreSource(deps: StoreSourceDeps, nodeName: string): VmiSource & Disposable {
  return new StoreSource(deps, nodeName);
}
