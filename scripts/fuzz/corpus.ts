import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderJson } from '@virtwire/vm-model';
import { openFiles } from '../testdata/bundle.ts';

const TESTDATA = join(import.meta.dirname, '../../testdata');

/** Inputs to start from, recorded from KubeVirt's own processes. */
export interface Corpus {
  /** Requests by the path of their method. */
  readonly requests: ReadonlyMap<string, readonly Buffer[]>;
  readonly domains: readonly Buffer[];
  readonly vmis: readonly Buffer[];
  readonly xmls: readonly Buffer[];
  /** What clients wrote on whole connections. */
  readonly connections: readonly Buffer[];
}

interface Message {
  readonly method?: string;
  readonly request?: { readonly base64?: string; readonly embedded?: Readonly<Record<string, unknown>> };
  readonly response?: { readonly embedded?: Readonly<Record<string, unknown>> };
}

const MAX_OF_A_KIND = 60;
const MAX_CONNECTION_BYTES = 8_192;

/** Reads the corpus out of the repository's test data. */
export function readCorpus(): Corpus {
  const files = openFiles(join(TESTDATA, 'captures.ndjson.br'));
  const requests = new Map<string, Buffer[]>();
  const [domains, vmis, xmls]: Buffer[][] = [[], [], []];
  for (const path of files.paths) {
    if (path.endsWith('.xml')) add(xmls, Buffer.from(files.text(path)));
    if (!/\/\d+-[^/]*\.json$/.test(path)) continue;
    const { method, request, response } = files.json(path) as Message;
    if (method === undefined || request?.base64 === undefined) continue;
    const known = requests.get(method) ?? [];
    requests.set(method, known);
    add(known, Buffer.from(request.base64, 'base64'));
    const embedded = { ...request.embedded, ...response?.embedded };
    for (const [key, list] of [
      ['domain', domains],
      ['domainJSON', domains],
      ['vmi.vmiJson', vmis],
    ] as const) {
      if (embedded[key] !== undefined) add(list, Buffer.from(renderJson(embedded[key])));
    }
  }
  return { requests, domains: domains ?? [], vmis: vmis ?? [], xmls: xmls ?? [], connections: readConnections() };
}

function add(list: Buffer[] | undefined, bytes: Buffer): void {
  if (list !== undefined && list.length < MAX_OF_A_KIND) list.push(bytes);
}

function readConnections(): readonly Buffer[] {
  const directory = join(import.meta.dirname, '../../packages/shared-proto/testdata');
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.bin'))
    .map((path) => readFileSync(join(directory, path)).subarray(0, MAX_CONNECTION_BYTES));
}
