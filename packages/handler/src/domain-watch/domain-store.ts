import { objectKey } from '../model.ts';
import type { Domain } from '../model.ts';
import type { DomainFact } from '../vmi/observed.ts';

/** Key of a domain in the store. */
export function domainKey(domain: Domain): string {
  return objectKey({ namespace: domain.ObjectMeta.namespace ?? '', name: domain.ObjectMeta.name ?? '' });
}

/** The latest domain of every VMI, and for which VMIs it is known that there is none. */
export interface DomainStore {
  get(key: string): Domain | undefined;
  keys(): readonly string[];
  /** Adds or replaces; tells the listeners. */
  upsert(domain: Domain): void;
  /** Removes a domain that its launcher says is gone; tells the listeners. */
  delete(key: string): void;
  /** Removes a domain after its final clean-up; tells nobody. */
  drop(key: string): void;
  /** Remembers that a launcher said that it has no domain. */
  noteAbsent(key: string): void;
  /** Marks a key whose launcher has yet to be asked. */
  noteUnasked(key: string): void;
  /** Forgets what is remembered about a key that belongs to no VMI any more. */
  forget(key: string): void;
  /** What is known of the key's domain; `unknown` until its launcher was heard. */
  fact(key: string): DomainFact;
  /** True when absence was confirmed, or a domain is there. */
  isKnown(key: string): boolean;
  watch(listener: (key: string) => void): Disposable;
}

function factOf(domain: Domain): DomainFact {
  const uid = domain.Spec.Metadata.KubeVirt.UID ?? domain.ObjectMeta.uid ?? '';
  return domain.ObjectMeta.deletionTimestamp ? { state: 'absent', uid } : { state: 'present', domain };
}

/**
 * True when what a launcher said last about its domain must outlive the news that domain and launcher are gone: how the
 * guest ended decides between Succeeded and Failed.
 */
function isLastWord(old: Domain | undefined, uid: string): boolean {
  if (old === undefined || old.ObjectMeta.deletionTimestamp) return false;
  const isSame = uid === '' || (old.Spec.Metadata.KubeVirt.UID ?? '') === uid;
  return isSame && (old.Status.Status === 'Shutoff' || old.Status.Status === 'Crashed');
}

/**
 * A store of domains by `<namespace>/<name>`; the last writer wins, and an object with a deletion timestamp means that
 * there is no domain.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/controller.go:237
 */
export function createDomainStore(): DomainStore {
  const domains = new Map<string, Domain>();
  const absent = new Set<string>();
  const unasked = new Set<string>();
  const listeners = new Set<(key: string) => void>();
  const tell = (key: string): void => {
    for (const listener of listeners) listener(key);
  };
  const settle = (key: string): void => {
    absent.delete(key);
    unasked.delete(key);
  };
  return {
    get: (key) => domains.get(key),
    keys: () => [...domains.keys()],
    upsert(domain) {
      const key = domainKey(domain);
      settle(key);
      const isGone = Boolean(domain.ObjectMeta.deletionTimestamp);
      const isKept = isGone && isLastWord(domains.get(key), domain.Spec.Metadata.KubeVirt.UID ?? '');
      if (!isKept) domains.set(key, domain);
      tell(key);
    },
    delete(key) {
      if (isLastWord(domains.get(key), '')) return tell(key);
      settle(key);
      absent.add(key);
      domains.delete(key);
      tell(key);
    },
    drop(key) {
      if (!domains.delete(key)) return;
      settle(key);
      absent.add(key);
    },
    noteAbsent(key) {
      if (domains.has(key)) return;
      unasked.delete(key);
      absent.add(key);
      tell(key);
    },
    noteUnasked(key) {
      if (!domains.has(key) && !absent.has(key)) unasked.add(key);
    },
    forget(key) {
      if (!domains.has(key)) settle(key);
    },
    fact(key) {
      const domain = domains.get(key);
      if (domain !== undefined) return factOf(domain);
      return { state: unasked.has(key) ? 'unknown' : 'absent', uid: '' };
    },
    isKnown: (key) => domains.has(key) || absent.has(key),
    watch(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  };
}
