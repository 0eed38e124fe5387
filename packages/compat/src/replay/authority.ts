import { compareReleases } from '@virtwire/shared-proto/history';

/** The first release whose clients say `localhost`. @source wire.md 2, The authority trap */
const FIRST_WITH_LOCALHOST = 'v1.1.0';

/**
 * What is wrong with the authority of a client; undefined when it has the habit of its release.
 *
 * @param release a tag; undefined when it is not known.
 */
export function authorityProblem(authority: string, release: string | undefined): string | undefined {
  if (authority === 'localhost') return undefined;
  const isSocket = /^\/.*sock$/.test(authority);
  if (!isSocket) return `authority "${authority}" is neither localhost nor a socket`;
  const isOld = release === undefined || compareReleases(release, FIRST_WITH_LOCALHOST) < 0;
  return isOld ? undefined : `authority "${authority}" in ${release}, whose clients say localhost`;
}
