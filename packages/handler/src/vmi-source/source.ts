import type { Vmi } from '../model.ts';

/** `<namespace>/<name>`: the key of stores and of the work queue. */
export type VmiKey = string;

/** One change of the set of VMIs, in the order in which they happened. */
export type VmiSourceEvent =
  | { readonly type: 'added'; readonly vmi: Vmi }
  | { readonly type: 'modified'; readonly vmi: Vmi; readonly old: Vmi }
  | { readonly type: 'deleted'; readonly vmi: Vmi };

/**
 * Where the VMIs of a node come from: Kubernetes, or a directory of manifests.
 *
 * Objects are handed out frozen in meaning: nobody may change them, a writer copies first. The semantics are those of
 * the API server: each object carries `metadata.resourceVersion`, and an update with an old one is refused.
 */
export interface VmiSource {
  /** Resolves when the first complete list is in the store. */
  readonly synced: Promise<void>;
  /** All VMIs of this node (label `kubevirt.io/nodeName`), by key. */
  list(): readonly Vmi[];
  /** The VMI of this node, or undefined. */
  get(key: VmiKey): Vmi | undefined;
  /** The VMI wherever it runs; the store of this node may lag behind a label change. */
  getAnywhere(key: VmiKey): Vmi | undefined;
  /** Calls `listener` for every change from now on, for VMIs of this node. */
  watch(listener: (event: VmiSourceEvent) => void): Disposable;
  /**
   * Replaces the whole object.
   *
   * @returns the object as stored, with its new resourceVersion.
   * @throws {HandlerError} `Conflict` when `metadata.resourceVersion` is not the stored one, `NotFound` when the object
   * or its UID is gone.
   */
  update(vmi: Vmi, signal?: AbortSignal): Promise<Vmi>;
}
