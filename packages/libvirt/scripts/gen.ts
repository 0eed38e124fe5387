/**
 * Generates `src/gen/*.gen.ts` from `protocol/*.json`.
 *
 *   node -C @virtwire/source scripts/gen.ts            writes the files
 *   node -C @virtwire/source scripts/gen.ts --check    exits 1 when a committed file is stale
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderConstants } from './gen-constants.ts';
import type { ConstantsJson } from './gen-constants.ts';
import { renderSchema } from './gen-schema.ts';
import { renderTypes } from './gen-types.ts';
import type { ProtocolJson } from './protocol-json.ts';

const root = join(import.meta.dirname, '..');

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(join(root, 'protocol', name), 'utf8'));
}

function readOr(path: string, fallback: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return fallback;
  }
}

function main(argv: readonly string[]): number {
  const protocol = readJson('protocol.json') as ProtocolJson;
  const constants = readJson('constants.json') as ConstantsJson;
  const outputs: readonly (readonly [string, string])[] = [
    ['schema.gen.ts', renderSchema(protocol)],
    ['types.gen.ts', renderTypes(protocol)],
    ['constants.gen.ts', renderConstants(constants, protocol)],
  ];
  let stale = 0;
  for (const [name, text] of outputs) {
    const path = join(root, 'src/gen', name);
    if (readOr(path, '') === text) continue;
    if (argv.includes('--check')) {
      process.stdout.write(`stale: packages/libvirt/src/gen/${name}; run: nx gen libvirt\n`);
      stale++;
    } else {
      writeFileSync(path, text);
      process.stdout.write(`wrote packages/libvirt/src/gen/${name}\n`);
    }
  }
  return stale === 0 ? 0 : 1;
}

process.exitCode = main(process.argv.slice(2));
