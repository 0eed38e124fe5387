/** UIDs of VMIs whose pause somebody asked for. A sync resumes every other paused domain. */
export interface PausedSet {
  add(uid: string): void;
  delete(uid: string): void;
  has(uid: string): boolean;
  uids(): readonly string[];
}

/** Creates an empty set. It lives as long as the launcher, which is as long as its VM. */
export function createPausedSet(): PausedSet {
  const uids = new Set<string>();
  return {
    add: (uid) => void uids.add(uid),
    delete: (uid) => void uids.delete(uid),
    has: (uid) => uids.has(uid),
    uids: () => [...uids],
  };
}
