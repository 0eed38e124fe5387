/**
 * `npm run vectors -- FAMILY [DIR]`: runs a folder of reference cases through the product's public functions.
 *
 * Prints one line per case that differs and ends with `N passed, N failed`. Exit code: 0 all passed, 1 a case failed,
 * 2 bad usage.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Files, openFiles } from '../testdata/bundle.ts';
import { FAMILIES, type FamilyEntry } from './families/index.ts';
import { runFamily } from './run.ts';

const ROOT = resolve(import.meta.dirname, '../..');

function usage(problem: string): number {
  const known = [...FAMILIES.keys()].sort().join(', ');
  process.stderr.write(`${problem}\nusage: npm run vectors -- FAMILY [DIR]\nfamilies: ${known}\n`);
  return 2;
}

function open(name: string, family: FamilyEntry, directory: string | undefined): Files | undefined {
  const path = directory === undefined ? join(ROOT, `testdata/${family.data ?? name}.ndjson.br`) : resolve(directory);
  return existsSync(path) ? openFiles(path) : undefined;
}

async function main(args: readonly string[]): Promise<number> {
  const [name, directory, ...rest] = args;
  if (name === undefined) return usage('no family given');
  if (name === '--help' || name === '-h') return usage('Runs reference cases through the product.');
  if (rest.length > 0) return usage(`unexpected argument ${rest.join(' ')}`);
  const family = FAMILIES.get(name);
  if (family === undefined) return usage(`unknown family ${name}`);
  const files = open(name, family, directory);
  if (files === undefined) return usage(`no folder ${directory ?? name}`);
  const { passed, failures, leftOut } = await runFamily(await family.load(), files);
  for (const failure of failures) process.stdout.write(`${failure.name}: ${oneLine(failure.differences)}\n`);
  for (const [reason, count] of leftOut) process.stdout.write(`${count} not run: ${reason}\n`);
  if (passed + failures.length + leftOut.size === 0)
    return usage(`no case of family ${name} in ${directory ?? 'the test data'}`);
  process.stdout.write(`${passed} passed, ${failures.length} failed\n`);
  return failures.length === 0 ? 0 : 1;
}

function oneLine(differences: readonly string[]): string {
  const [first = '', ...more] = differences;
  return `${first.replaceAll('\n', '\\n')}${more.length > 0 ? ` (and ${String(more.length)} more)` : ''}`;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (caught) {
  // A folder that lacks a file of its family, or holds one that is no JSON: told in one line, as a failure.
  process.stderr.write(`vectors: ${caught instanceof Error ? caught.message.replaceAll('\n', ' ') : String(caught)}\n`);
  process.exitCode = 1;
}
