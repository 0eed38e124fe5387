import { parseArgs } from 'node:util';

import { lineOf, openHistory, type SchemaHistory } from '@virtwire/shared-proto/history';

import { CompatError } from '../errors.ts';
import { compareSchemas } from './compare.ts';
import { schemaOfRelease } from './from-history.ts';
import type { Schema } from './model.ts';
import { readSchema } from './read-protos.ts';
import type { Output } from './output.ts';
import { groupBreaks, renderBreaks } from './report.ts';

/** Oldest release that anyone upgrades from: the default looks no further back. */
const OLDEST = 'v0.59.0';

/**
 * Compares proto files or a descriptor set with releases and says what breaks for whom.
 *
 * @returns 1 if something breaks.
 * @throws {CompatError} `BadOption` for a path or release that is none or a path without services, `DecodeFailed` for files that cannot be read.
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
  const known = servicesOf(history.releases.map((release) => schemaOfRelease(history, release)));
  const services = chooseServices(next, known, path);
  const found = new Map(
    releases.map((release) => [release, compareSchemas(next, onlyOf(schemaOfRelease(history, release), services))]),
  );
  const groups = groupBreaks(found);
  if (values.json) {
    io.line(JSON.stringify({ compared: releases, services, breaks: groups }));
  } else {
    io.line(renderBreaks(groups, releases, history.releases));
    if (services.length < known.length) io.line(`in one file, compared alone: ${services.join(', ')}`);
  }
  return groups.length > 0 ? 1 : 0;
}

const serviceOf = (path: string): string => path.slice(1, path.lastIndexOf('/'));

function servicesOf(schemas: readonly Schema[]): readonly string[] {
  return [...new Set(schemas.flatMap(({ rpcs }) => [...rpcs.keys()].map(serviceOf)))];
}

/**
 * The services to compare: those of a single proto file, since the others have files of their own; else all.
 *
 * @throws {CompatError} `BadOption` for input that has nothing to do with handlers and launchers.
 */
function chooseServices(next: Schema, known: readonly string[], path: string): readonly string[] {
  const own = known.filter((service) => servicesOf([next]).includes(service));
  if (own.length > 0) return path.endsWith('.proto') ? own : known;
  throw new CompatError('BadOption', `${path} declares no service of handlers and launchers: ${known.join(', ')}`);
}

function onlyOf({ rpcs, messages }: Schema, services: readonly string[]): Schema {
  return { rpcs: new Map([...rpcs].filter(([path]) => services.includes(serviceOf(path)))), messages };
}

/** The releases of `--against`: tags, lines or `all`, separated by commas; without any, all from v0.59 on. */
function chooseReleases(history: SchemaHistory, against: readonly string[]): readonly string[] {
  const words = against.flatMap((text) => text.split(',')).filter((word) => word !== '');
  if (words.length === 0 && against.length > 0) throw new CompatError('BadOption', '--against names no release');
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
