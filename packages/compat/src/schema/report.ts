import type { SchemaBreak } from './compare.ts';

/** A break and the releases whose peers notice it, oldest first. */
export interface GroupedBreak extends SchemaBreak {
  readonly releases: readonly string[];
}

/** Puts equal breaks of several releases together, in the order in which they first appear. */
export function groupBreaks(found: ReadonlyMap<string, readonly SchemaBreak[]>): readonly GroupedBreak[] {
  const groups = new Map<string, SchemaBreak & { releases: string[] }>();
  for (const [release, breaks] of found) {
    for (const one of breaks) {
      const key = JSON.stringify([one.rule, one.where, one.whom, one.text]);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { ...one, releases: [release] });
      else group.releases.push(release);
    }
  }
  return [...groups.values()];
}

/**
 * Prints breaks in words, one paragraph each.
 *
 * @param compared the releases that were looked at, oldest first.
 * @param all every release there is, oldest first: those without a gap are printed as a range.
 */
export function renderBreaks(
  groups: readonly GroupedBreak[],
  compared: readonly string[],
  all: readonly string[],
): string {
  const scope = renderReleases(compared, all);
  if (groups.length === 0) return `no break with ${scope}`;
  const paragraphs = groups.map(
    ({ rule, where, whom, text, releases }) =>
      `${where}: ${text}\n  breaks ${renderWhom(whom)} of ${renderReleases(releases, all)}  [${rule}]`,
  );
  const count = groups.length === 1 ? '1 break' : `${groups.length} breaks`;
  return [`${count}; compared with ${scope}`, '', ...paragraphs].join('\n');
}

function renderWhom(whom: SchemaBreak['whom']): string {
  return whom === 'both sides' ? 'handlers and launchers' : whom;
}

/** Runs of releases that follow each other in the list: `v0.36.3 to v0.36.5, v0.41.0 to v1.9.0`. */
function renderReleases(releases: readonly string[], all: readonly string[]): string {
  const runs: { first: string; last: string; at: number }[] = [];
  for (const release of releases) {
    const at = all.indexOf(release);
    const run = runs.at(-1);
    if (run !== undefined && run.at + 1 === at) Object.assign(run, { last: release, at });
    else runs.push({ first: release, last: release, at });
  }
  return runs.map(({ first, last }) => (first === last ? first : `${first} to ${last}`)).join(', ');
}
