import type { Vmi } from '@virtwire/vm-model';

/** `<namespace>/<name>`. */
export type VmiKey = string;

/** The key of a VMI. */
export function keyOf(vmi: Vmi): VmiKey {
  return `${vmi.metadata.namespace}/${vmi.metadata.name}`;
}

/** The VMIs of a node, of every phase, as controller and handler share them. Updates carry a resourceVersion. */
export interface VmiStore {
  list(): readonly Vmi[];
  get(key: VmiKey): Vmi | undefined;
  /** Stores a new VMI; fails when one of that name exists. */
  create(vmi: Vmi): Promise<Vmi>;
  /** Replaces the whole object; rejects with code `Conflict` for an old resourceVersion, `NotFound` when it is gone. */
  update(vmi: Vmi): Promise<Vmi>;
  remove(key: VmiKey): Promise<void>;
  /** Calls `listener` with the key of every VMI that changed, by whomever. */
  watch(listener: (key: VmiKey) => void): Disposable;
}
