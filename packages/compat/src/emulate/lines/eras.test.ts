import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RELEASE_LINES } from '../../release-line.ts';
import { bundledJson } from '../../testing/bundle.ts';
import { factsOf } from './lines.ts';

const { eras } = bundledJson('wire-releases', 'releases.json') as {
  readonly eras: Readonly<Record<string, readonly { readonly since: string; readonly until: string | null }[]>>;
};

/** What the reference knows and no emulation does, and why. */
const OUT_OF_SCOPE: Readonly<Record<string, string>> = {
  keepalive: 'no peer sends pings, and Node answers those that come by itself',
  errorTextsMatchedByHandler: 'no launcher written in Go prints the text',
  errorTextsMatchedElsewhere: 'tools in the pod and controllers match them, which are not emulated',
  unresponsiveMarker: 'emulated handlers have no watchdog: it needs half a minute',
};

/** Eras that the sources of the emulations stand on. */
function citedEras(): ReadonlySet<string> {
  const root = join(import.meta.dirname, '..');
  const files = globSync('**/*.ts', { cwd: root }).filter((file) => !file.endsWith('.test.ts'));
  const sources = files.map((file) => readFileSync(join(root, file), 'utf8'));
  const lists = sources.flatMap((text) => [...text.matchAll(/\beras[. ]([A-Za-z0-9]+(?:, [A-Za-z0-9]+)*)/g)]);
  return new Set(lists.flatMap(([, names = '']) => names.split(', ')));
}

test('every era of the reference is stood on, or said to be out of scope', () => {
  const cited = citedEras();
  const missing = Object.keys(eras).filter((name) => !cited.has(name) && OUT_OF_SCOPE[name] === undefined);
  expect(missing).toEqual([]);
  expect(Object.keys(OUT_OF_SCOPE).filter((name) => cited.has(name) || eras[name] === undefined)).toEqual([]);
});

const order = (tag: string): number =>
  tag
    .slice(1)
    .split('.')
    .reduce((sum, part) => sum * 1_000 + Number(part), 0);

/** Releases at which something changes that is not to be seen on the wire of a small VM. */
const UNSEEN: Readonly<Record<string, string>> = {
  domainStatsShape: 'how long statistics are kept, v1.3.0 to v1.4.1',
  rpcTimeoutsSeconds: 'a deadline of an RPC that is listed with its release',
};

test('every change within the emulated lines lies between two emulated releases that differ in a fact', () => {
  const emulated = RELEASE_LINES.flatMap((line) => [factsOf(line, 'first'), factsOf(line, 'last')]);
  const unseen: string[] = [];
  for (const [name, entries] of Object.entries(eras)) {
    if (OUT_OF_SCOPE[name] !== undefined || UNSEEN[name] !== undefined) continue;
    for (const { since } of entries.filter((entry) => order(entry.since) > order('v0.59.0'))) {
      const after = emulated.findIndex(({ release }) => order(release.value) >= order(since));
      const [before, next] = [emulated[after - 1], emulated[after]];
      const parts = ['shared', 'launcher', 'handler'] as const;
      const differs = parts.some((part) => JSON.stringify(before?.[part]) !== JSON.stringify(next?.[part]));
      if (!differs) unseen.push(`${name} ${since}`);
    }
  }
  expect(unseen).toEqual([]);
});
