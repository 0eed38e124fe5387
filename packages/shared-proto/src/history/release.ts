/** The minor line of a release tag: `v1.3` of `v1.3.1`. */
export function lineOf(release: string): string {
  return release.split('.', 2).join('.');
}

/** Orders release tags as semantic versions do; a pre-release comes before its release. Negative if `a` is older. */
export function compareReleases(a: string, b: string): number {
  const [first, second] = [numbersOf(a), numbersOf(b)];
  for (const [i, number] of first.entries()) {
    const difference = number - (second[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Major, minor, patch, and 0 for a pre-release or 1. What is no number counts as 0. */
function numbersOf(release: string): readonly number[] {
  const [core = '', ...pre] = release.replace(/^v/, '').replace(/\+.*$/, '').split('-');
  const parts = core.split('.').map(Number);
  return [0, 1, 2]
    .map((i) => parts[i] ?? 0)
    .map((part) => (Number.isFinite(part) ? part : 0))
    .concat(pre.length > 0 ? 0 : 1);
}
