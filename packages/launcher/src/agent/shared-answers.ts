import type { DomainRef } from '../domain/libvirt-port.ts';

/**
 * A question of which each is under way once at most: whoever asks the same meanwhile gets the same answer. Many who wait
 * for a guest that hangs would take all places of the connection otherwise, down to that of a kill.
 */
export function sharingAnswers<A extends readonly string[], T>(
  ask: (domain: DomainRef, ...args: A) => Promise<T>,
): (domain: DomainRef, ...args: A) => Promise<T> {
  const asking = new Map<string, Promise<T>>();
  return (domain, ...args) => {
    const key = [domain.uuid, ...args].join(' ');
    const running = asking.get(key);
    if (running !== undefined) return running;
    const answer = ask(domain, ...args).finally(() => asking.delete(key));
    asking.set(key, answer);
    return answer;
  };
}
