import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

/** One file of a bundle of the repository's test data. */
export interface BundledFile {
  readonly path: string;
  readonly json?: unknown;
  readonly text?: string;
}

/** Reads a bundle of the repository's test data. */
export function readBundle(name: string): readonly BundledFile[] {
  const bundle = readFileSync(join(import.meta.dirname, `../../../../testdata/${name}.ndjson.br`));
  const lines = brotliDecompressSync(bundle).toString('utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as BundledFile);
}

/** The JSON of a bundled file. */
export function bundledJson(name: string, path: string): unknown {
  const file = readBundle(name).find((candidate) => candidate.path === path);
  if (file === undefined) throw new Error(`${name} holds no ${path}`);
  return file.json;
}
