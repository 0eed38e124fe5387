import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

/** Reads the JSON files of a bundle of the repository's test data, by their paths. */
export function readBundle(name: string): ReadonlyMap<string, unknown> {
  const bundle = readFileSync(join(import.meta.dirname, `../../../../testdata/${name}.ndjson.br`));
  const lines = brotliDecompressSync(bundle).toString('utf8').trimEnd().split('\n');
  const entries = lines.map((line) => JSON.parse(line) as { path: string; json?: unknown });
  return new Map(entries.filter(({ json }) => json !== undefined).map(({ path, json }) => [path, json]));
}

/** A message between a real handler and a real launcher. */
export interface RecordedMessage {
  readonly release: string;
  readonly scenario: string;
  readonly label?: string;
  readonly method: string;
  readonly request: { readonly type: string; readonly base64: string };
  readonly response?: { readonly type: string; readonly base64: string };
  readonly grpcStatus: { readonly code: number; readonly message: string };
}

/** Every message of the captures, of all releases. */
export function readRecordedMessages(): readonly RecordedMessage[] {
  return [...readBundle('captures').values()].filter(isMessage);
}

function isMessage(json: unknown): json is RecordedMessage {
  return typeof json === 'object' && json !== null && 'grpcStatus' in json && 'request' in json;
}
