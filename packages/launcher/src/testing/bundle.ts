import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { parseJson } from '@virtwire/vm-model';

interface Entry {
  readonly path: string;
  readonly json?: unknown;
}

const TESTDATA = join(import.meta.dirname, '../../../../testdata');

/** One recorded case of a launcher family. */
export interface VectorCase<I, O> {
  readonly name: string;
  readonly input: I;
  readonly output: O;
}

/** The cases of a family of the repository's test data, in order. */
export function readCases<I, O>(family: string): readonly VectorCase<I, O>[] {
  const text = brotliDecompressSync(readFileSync(join(TESTDATA, `${family}.ndjson.br`))).toString('utf8');
  const files = new Map<string, unknown>();
  for (const line of text.trimEnd().split('\n')) {
    const { path, json } = parseJson(line) as Entry;
    files.set(path, json);
  }
  const names = [...files.keys()].filter((path) => path.endsWith('/input.json')).map((path) => path.slice(0, -11));
  return names.sort().map((name) => ({
    name,
    input: files.get(`${name}/input.json`) as I,
    output: files.get(`${name}/output.json`) as O,
  }));
}

/** All files of a family by path: JSON parsed, others as text. */
export function readFiles(family: string): ReadonlyMap<string, unknown> {
  const text = brotliDecompressSync(readFileSync(join(TESTDATA, `${family}.ndjson.br`))).toString('utf8');
  return new Map(
    text
      .trimEnd()
      .split('\n')
      .map((line) => parseJson(line) as Entry & { readonly text?: string })
      .map(({ path, json, text: content }) => [path, json ?? content]),
  );
}
