import { parseArgs } from 'node:util';

import { lineOf, openHistory, type SchemaHistory } from '@virtwire/shared-proto/history';

import { CompatError } from '../errors.ts';
import { compareSchemas } from './compare.ts';
import { schemaOfRelease } from './from-history.ts';
import { readSchema } from './read-protos.ts';
import type { Output } from './output.ts';
import { groupBreaks, renderBreaks } from './report.ts';

/** Oldest release that anyone upgrades from: the default looks no further back. */
const OLDEST = 'v0.59.0';

/**
 * Compares proto files or a descriptor set with releases and says what breaks for whom.
 *
 * @returns 1 if something breaks.
 * @throws {CompatError} `BadOption` for a path or release that is none, `DecodeFailed` for files that cannot be read.
 */
export async function schemaCommand(argv: readonly string[], io: Output): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: { against: { type: 'string', multiple: true }, json: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const [path, ...others] = positionals;
  if (path === undefined || others.length > 0) throw new CompatError('BadOption', 'one PATH is needed');
  const history = openHistory();
  const releases = chooseReleases(history, values.against ?? []);
  const next = readSchema(path);
  const found = new Map(releases.map((release) => [release, compareSchemas(next, schemaOfRelease(history, release))]));
  const groups = groupBreaks(found);
  io.line(
    values.json
      ? JSON.stringify({ compared: releases, breaks: groups })
      : renderBreaks(groups, releases, history.releases),
  );
  return groups.length > 0 ? 1 : 0;
}

/** The releases of `--against`: tags, lines or `all`, separated by commas; without any, all from v0.59 on. */
function chooseReleases(history: SchemaHistory, against: readonly string[]): readonly string[] {
  const words = against.flatMap((text) => text.split(',')).filter((word) => word !== '');
  if (words.includes('all')) return history.releases;
  if (words.length === 0) return history.releases.slice(history.releases.indexOf(OLDEST));
  const chosen = new Set(words.flatMap((word) => releasesOf(history, word)));
  return history.releases.filter((release) => chosen.has(release));
}

function releasesOf(history: SchemaHistory, word: string): readonly string[] {
  const name = word.startsWith('v') ? word : `v${word}`;
  const found = history.releases.filter((release) => release === name || lineOf(release) === name);
  if (found.length === 0) throw new CompatError('BadOption', `${word} is no release of the history`);
  return found;
}
