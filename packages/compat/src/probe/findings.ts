/** What a live peer does with one RPC, or with something else of the contract, which stands in brackets. */
export interface Finding {
  readonly rpc: string;
  readonly verdict: 'supported' | 'deviates' | 'missing' | 'not asked';
  /** How it deviates; else what it was seen to do. */
  readonly detail: string;
}

interface Entry {
  readonly good: string[];
  readonly bad: string[];
  missing: string | undefined;
}

const MAX_DETAILS = 4;

/** Collects what was seen of each RPC. */
export class Findings {
  readonly #entries = new Map<string, Entry>();

  /** Notes what a peer did as it should. */
  good(rpc: string, what: string): void {
    this.#entry(rpc).good.push(what);
  }

  /** Notes a deviation from the contract. */
  bad(rpc: string, what: string): void {
    this.#entry(rpc).bad.push(what);
  }

  /** Notes that a peer does not have an RPC. */
  missing(rpc: string, details: string): void {
    this.#entry(rpc).missing = details;
  }

  isMissing(rpc: string): boolean {
    return this.#entries.get(rpc)?.missing !== undefined;
  }

  /** One finding for each of these, and for whatever else was noted. */
  list(rpcs: readonly string[], notAsked: string): readonly Finding[] {
    const names = new Set([...rpcs, ...this.#entries.keys()]);
    return [...names].map((rpc) => this.#finding(rpc, notAsked));
  }

  #finding(rpc: string, notAsked: string): Finding {
    const entry = this.#entries.get(rpc);
    if (entry === undefined) return { rpc, verdict: 'not asked', detail: notAsked };
    const { good, bad, missing } = entry;
    if (bad.length > 0) return { rpc, verdict: 'deviates', detail: summary(bad) };
    if (missing !== undefined) return { rpc, verdict: 'missing', detail: missing };
    return { rpc, verdict: 'supported', detail: summary(good) };
  }

  #entry(rpc: string): Entry {
    const known = this.#entries.get(rpc);
    if (known !== undefined) return known;
    const made: Entry = { good: [], bad: [], missing: undefined };
    this.#entries.set(rpc, made);
    return made;
  }
}

function summary(texts: readonly string[]): string {
  const shown = [...new Set(texts)].slice(0, MAX_DETAILS).join('; ');
  return texts.length > MAX_DETAILS ? `${shown}; …` : shown;
}
