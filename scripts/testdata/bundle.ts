import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { parseJson, renderJson } from '@virtwire/vm-model';

/** A file of a folder of test data; JSON files are parsed, recorded bytes have one character per byte, others are text. */
type Entry = { readonly path: string } & (
  { readonly json: unknown } | { readonly text: string } | { readonly latin1: string }
);

/**
 * A folder of test data, whether it is a real one or a bundle. Paths are relative, with `/`.
 *
 * A bundle is NDJSON compressed with Brotli, one line per file: `{"path":"001-a/vmi.json","json":{...}}`, `{"path":...,"text":"..."}`
 * or `{"path":"a.bin","latin1":"..."}`.
 */
export interface Files {
  readonly paths: readonly string[];
  has(path: string): boolean;
  /** @throws {Error} when there is no such file. */
  text(path: string): string;
  /** Integers beyond 2^53 come as bigint. */
  json(path: string): unknown;
}

/** Opens a folder, a single file (then the only path is its name) or a bundle. */
export function openFiles(path: string): Files {
  if (path.endsWith('.ndjson.br')) return filesOf(parseBundle(readFileSync(path)));
  return filesOf(listFiles(path).map((file) => readEntry(path, file)));
}

/** Packs a folder or a single file; the same input gives the same bytes. */
export function renderBundle(path: string): Buffer {
  const lines = listFiles(path)
    .filter((file) => basename(file) !== 'README.md')
    .map((file) => renderJson(readEntry(path, file)));
  const text = Buffer.from(`${lines.join('\n')}\n`);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    // Cases of a family repeat each other over distances that gzip's 32 KiB do not reach.
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
  };
  return brotliCompressSync(text, { params });
}

/** What a bundle holds, for comparing two of them whatever the compressor. */
export function bundleText(bundle: Buffer): string {
  return brotliDecompressSync(bundle).toString('utf8');
}

function parseBundle(bundle: Buffer): readonly Entry[] {
  return bundleText(bundle)
    .trimEnd()
    .split('\n')
    .map((line) => parseJson(line) as Entry);
}

function listFiles(path: string): readonly string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function readEntry(root: string, file: string): Entry {
  const path = relative(root, file) === '' ? basename(file) : relative(root, file);
  if (file.endsWith('.bin')) return { path, latin1: readFileSync(file, 'latin1') };
  const text = readFileSync(file, 'utf8');
  return file.endsWith('.json') ? { path, json: parseJson(text) } : { path, text };
}

function filesOf(entries: readonly Entry[]): Files {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  const find = (path: string): Entry => {
    const entry = byPath.get(path);
    if (entry === undefined) throw new Error(`no file ${path} in the test data`);
    return entry;
  };
  const textOf = (entry: Entry): string => {
    if ('json' in entry) return renderJson(entry.json);
    return 'text' in entry ? entry.text : entry.latin1;
  };
  return {
    paths: [...byPath.keys()],
    has: (path) => byPath.has(path),
    text: (path) => textOf(find(path)),
    json: (path) => {
      const entry = find(path);
      return 'json' in entry ? structuredClone(entry.json) : parseJson(textOf(entry));
    },
  };
}
