import { compareReleases } from '../history/release.ts';

/** Releases that a peer may be of: from `since` on, and older than `until`; undefined = no bound known. */
export interface Era {
  readonly since: string | undefined;
  readonly until: string | undefined;
}

/** Nothing is known. */
export const ANY_ERA: Era = { since: undefined, until: undefined };

/** True if a peer of an era may be of a release in a range. */
export function mayBe(era: Era, range: Era): boolean {
  return isBefore(era.since, range.until) && isBefore(range.since, era.until);
}

/** True if a peer of an era is certainly of a release in a range. */
export function mustBe(era: Era, range: Era): boolean {
  const { since, until } = era;
  const startsInside = range.since === undefined || (since !== undefined && compareReleases(range.since, since) <= 0);
  const endsInside = range.until === undefined || (until !== undefined && compareReleases(until, range.until) <= 0);
  return startsInside && endsInside;
}

/** An era in words: `v1.2.0 to before v1.6.0`, `before v1.6.0`, `v1.9.0 or newer`, `any release`. */
export function renderEra({ since, until }: Era): string {
  if (since === undefined) return until === undefined ? 'any release' : `before ${until}`;
  return until === undefined ? `${since} or newer` : `${since} to before ${until}`;
}

/** True if something begins before something else ends; what has no bound always does. */
function isBefore(since: string | undefined, until: string | undefined): boolean {
  return since === undefined || until === undefined || compareReleases(since, until) < 0;
}
