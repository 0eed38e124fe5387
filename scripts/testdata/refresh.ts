/**
 * Copies reference data into the repository in compact form.
 *
 *     node -C @virtwire/source scripts/testdata/refresh.ts [--from DIR] [--check] [FAMILY...]
 *
 * `--from` names the folder with `vectors/`, `wire/`, ... (default: `shared` beside the repository). With `--check`
 * nothing is written; the exit code is 1 when a copy differs from its source, and 0 with a note when there is no source.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parseJson, renderJson } from '@virtwire/vm-model';
import { bundleText, renderBundle } from './bundle.ts';
import { FAMILIES, type Family, targetOf } from './families.ts';

const ROOT = resolve(import.meta.dirname, '../..');

function pack(family: Family, source: string): Buffer {
  if (family.form === 'bundle') return renderBundle(source);
  return Buffer.from(`${renderJson(parseJson(readFileSync(source, 'utf8')))}\n`);
}

function isSame(family: Family, a: Buffer, b: Buffer): boolean {
  return family.form === 'bundle' ? bundleText(a) === bundleText(b) : a.equals(b);
}

function refresh(family: Family, from: string, isCheck: boolean): boolean {
  const packed = pack(family, join(from, family.from));
  const target = join(ROOT, targetOf(family));
  const isCurrent = existsSync(target) && isSame(family, packed, readFileSync(target));
  if (isCurrent) return true;
  if (isCheck) {
    process.stderr.write(`${targetOf(family)} differs from ${family.from}: run scripts/testdata/refresh.ts\n`);
    return false;
  }
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, packed);
  process.stdout.write(`${targetOf(family)}: ${packed.length} bytes\n`);
  return true;
}

function main(): number {
  const { values, positionals } = parseArgs({
    options: { from: { type: 'string', default: join(ROOT, '../shared') }, check: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const unknown = positionals.find((name) => !FAMILIES.some((family) => family.name === name));
  if (unknown !== undefined) {
    process.stderr.write(`unknown family ${unknown}; known: ${FAMILIES.map((family) => family.name).join(', ')}\n`);
    return 2;
  }
  if (!existsSync(values.from)) {
    process.stdout.write(`no source folder ${values.from}: the test data stays as it is\n`);
    return values.check ? 0 : 1;
  }
  const chosen = FAMILIES.filter((family) => positionals.length === 0 || positionals.includes(family.name));
  const results = chosen.map((family) => refresh(family, values.from, values.check));
  return results.every(Boolean) ? 0 : 1;
}

process.exitCode = main();
