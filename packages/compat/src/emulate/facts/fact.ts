/** Something known about a release, and where it is written. */
export interface Fact<T> {
  readonly value: T;
  /** Document and section of KubeVirt's wire reference: `releases.json eras.dialAuthority`, `wire.md 10.4`. */
  readonly source: string;
}

/** States a fact. */
export function fact<T>(value: T, source: string): Fact<T> {
  return { value, source };
}
