import { compareReleases } from '../history/release.ts';
import { ANY_ERA, type Era } from './era.ts';
import { RPC_RULES } from './rpc-rules.ts';

/** What was seen of a peer. Plain data: it is stored as it is. */
export interface PeerFacts {
  /** RPCs that it has answered, with whatever; those that every release has may be left out. */
  readonly served: readonly string[];
  /** RPCs that it answered with UNIMPLEMENTED. */
  readonly missing: readonly string[];
  /** Bounds from other signs: `erasOfDomainJson`. */
  readonly bounds: readonly Era[];
}

/** Nothing was seen. */
export const NO_FACTS: PeerFacts = { served: [], missing: [], bounds: [] };

/**
 * Which releases a launcher may be of.
 *
 * The protocol's generation is 1 in every release and says nothing. What a peer can do counts more than what it lacks:
 * an upper bound that contradicts a lower one is dropped, since a launcher that is not KubeVirt's may lack something
 * and yet speak the newest schema, while what it prints or serves it must know.
 */
export function decideEra(facts: PeerFacts): Era {
  const lower = [...facts.served.map(sinceOf), ...facts.bounds.map(({ since }) => since)].filter(isKnown);
  const since = lower.toSorted(compareReleases).at(-1);
  const upper = [...facts.missing.map(sinceOf), ...facts.bounds.map(({ until }) => until)].filter(isKnown);
  const [until] = upper
    .toSorted(compareReleases)
    .filter((bound) => since === undefined || compareReleases(since, bound) < 0);
  return since === undefined && until === undefined ? ANY_ERA : { since, until };
}

/** True if an RPC's being there or not tells something about the age of a launcher. */
export function tellsAge(rpc: string): boolean {
  return sinceOf(rpc) !== undefined;
}

function sinceOf(rpc: string): string | undefined {
  return RPC_RULES.find((rule) => rule.rpc === rpc)?.since;
}

function isKnown(release: string | undefined): release is string {
  return release !== undefined;
}
