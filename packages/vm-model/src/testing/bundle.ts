import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { parseJson } from '../json/lossless.ts';

/** A file of a bundle in `testdata/` of the repository: `json` for JSON files, `text` for others. */
export interface BundleFile {
  readonly path: string;
  readonly json?: unknown;
  readonly text?: string;
}

/** Reads a bundle of reference data; its form is told in `testdata/README.md`. */
export function readBundle(name: string): readonly BundleFile[] {
  const path = join(import.meta.dirname, '../../../../testdata', `${name}.ndjson.br`);
  const lines = brotliDecompressSync(readFileSync(path)).toString('utf8').trimEnd().split('\n');
  return lines.map((line) => parseJson(line) as BundleFile);
}
