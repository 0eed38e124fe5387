/** Lines that were told and still hold: each is told once, and again only after it was not true in between. */
export class ToldLines {
  readonly #told = new Map<string, ReadonlySet<string>>();

  /** Takes all lines that hold about something now; gives those that were not told yet. */
  news(about: string, lines: Iterable<string>): readonly string[] {
    const now = new Set(lines);
    const before = this.#told.get(about);
    if (now.size === 0) this.#told.delete(about);
    else this.#told.set(about, now);
    return [...now].filter((line) => before?.has(line) !== true);
  }

  /** Forgets everything about what is not among these. */
  keepOnly(isKept: (about: string) => boolean): void {
    for (const about of this.#told.keys()) if (!isKept(about)) this.#told.delete(about);
  }
}
