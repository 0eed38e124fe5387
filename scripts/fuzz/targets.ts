import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { CMD_RPC_NAMES, type CmdHandlers, normaliseAuthority, serveCmd, serveNotify } from '@virtwire/shared-proto';
import {
  parseDomainJson,
  parseDomainXml,
  parseVmiJson,
  renderDomainJson,
  renderDomainXml,
  renderVmiJson,
  VmModelError,
} from '@virtwire/vm-model';
import fc from 'fast-check';
import type { Corpus } from './corpus.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';
import { connectRaw, type RawClient } from './raw-client.ts';

/** Something that has to survive any bytes. */
export interface Target extends AsyncDisposable {
  /** Feeds one input. Rejects for a crash, a wrong error or a call that does not end. */
  feed(random: Random): Promise<void> | void;
}

/** Makes a target; `share` is its part of all inputs. */
export interface TargetPlan {
  readonly share: number;
  open(corpus: Corpus): Promise<Target>;
}

const CMD = '/kubevirt.cmd.v1.Cmd/';
const NOTIFY = '/kubevirt.notify.v1.Notify/';
const CALLS_AT_ONCE = 32;
const STRUCTURED = 400;

/** Every target by name. */
export const TARGETS: Readonly<Record<string, TargetPlan>> = {
  'cmd-server': { share: 0.2, open: openCmdServer },
  'notify-server': { share: 0.1, open: openNotifyServer },
  info: { share: 0.05, open: openInfo },
  normaliser: { share: 0.15, open: openNormaliser },
  'domain-json': { share: 0.2, open: (corpus) => openReader(corpus.domains, readDomainJson) },
  'domain-xml': { share: 0.2, open: (corpus) => openReader(corpus.xmls, readDomainXml) },
  'vmi-json': { share: 0.1, open: (corpus) => openReader(corpus.vmis, readVmiJson) },
};

const nothing = { [Symbol.asyncDispose]: async (): Promise<void> => undefined };

async function openCmdServer(corpus: Corpus): Promise<Target> {
  const methods = CMD_RPC_NAMES.map((rpc) => [`${rpc.charAt(0).toLowerCase()}${rpc.slice(1)}`, async () => undefined]);
  const handlers = Object.fromEntries(methods) as CmdHandlers;
  const paths = CMD_RPC_NAMES.map((rpc) => `${CMD}${rpc}`);
  return openServer((socket) => serveCmd(socket, handlers), paths, corpus, `${CMD}Ping`);
}

async function openNotifyServer(corpus: Corpus): Promise<Target> {
  const handlers = {
    handleDomainEvent: async (event: { domainJSON: Uint8Array }) => {
      parseDomainJson(Buffer.from(event.domainJSON).toString());
    },
    handleK8sEvent: async (event: { eventJSON: Uint8Array }) => {
      JSON.parse(Buffer.from(event.eventJSON).toString());
    },
  };
  const paths = [`${NOTIFY}HandleDomainEvent`, `${NOTIFY}HandleK8sEvent`];
  const info = '/kubevirt.notify.info.NotifyInfo/Info';
  return openServer((socket) => serveNotify(socket, handlers), paths, corpus, info);
}

async function openInfo(corpus: Corpus): Promise<Target> {
  const paths = ['/kubevirt.cmd.info.CmdInfo/Info', '/kubevirt.cmd.info.CmdInfo/Nothing', '/nothing'];
  return openServer((socket) => serveCmd(socket, {}), paths, corpus, paths[0] ?? '');
}

/** A server on a real socket and a client that sends it what no client would. */
async function openServer(
  serve: (socketPath: string) => Promise<AsyncDisposable>,
  paths: readonly string[],
  corpus: Corpus,
  witness: string,
): Promise<Target> {
  const directory = mkdtempSync(join(tmpdir(), 'virtwire-fuzz-'));
  const socket = join(directory, 'sock');
  const server = await serve(socket);
  const client: RawClient = connectRaw(socket);
  const all = [...corpus.requests.values()].flat();
  const running = new Set<Promise<void>>();
  let failure: unknown;
  return {
    feed: async (random) => {
      const path = random.pick(paths);
      const input = mutate(random.pick(corpus.requests.get(path) ?? all), random.pick(all), random);
      const call = client.call(path, input).catch((caught: unknown) => (failure ??= caught)) as Promise<void>;
      running.add(call);
      void call.then(() => running.delete(call));
      if (running.size >= CALLS_AT_ONCE) await Promise.race(running);
      if (failure !== undefined) throw failure as Error;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(running);
      await client.call(witness, Buffer.alloc(0));
      client[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Recorded connections of three releases with bytes changed, in pieces. */
async function openNormaliser({ connections }: Corpus): Promise<Target> {
  return {
    ...nothing,
    feed: (random) => {
      const bytes = mutate(random.pick(connections), random.pick(connections), random);
      return new Promise((resolve, reject) => {
        const inner = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
        const connection = normaliseAuthority(inner);
        let length = 0;
        connection.on('data', (chunk: Buffer) => (length += chunk.length));
        connection.on('error', () => undefined);
        connection.once('close', () => {
          // Header blocks may grow when they are written anew, by a bounded factor.
          if (length > bytes.length * 64 + 65_536) reject(new Error(`${bytes.length} bytes became ${length}`));
          else resolve();
        });
        connection.once('end', () => connection.destroy());
        const cut = random.below(bytes.length + 1);
        inner.push(bytes.subarray(0, cut));
        inner.push(bytes.subarray(cut));
        inner.push(null);
      });
    },
  };
}

/** Mutated documents, and structured ones that fast-check makes up. */
async function openReader(documents: readonly Buffer[], read: (text: string) => void): Promise<Target> {
  return {
    ...nothing,
    feed: (random) => {
      const isStructured = random.below(STRUCTURED) === 0;
      const text = isStructured
        ? (fc.sample(fc.json({ maxDepth: 8 }), { numRuns: 1, seed: random.below(2 ** 31) })[0] ?? '')
        : mutate(random.pick(documents), random.pick(documents), random).toString('utf8');
      read(text);
    },
  };
}

/** What can be read can be printed, and reads the same again; what cannot is refused with an error of the package. */
function roundTrip<T>(text: string, parse: (text: string) => T, render: (value: T) => string): void {
  let value: T;
  try {
    value = parse(text);
  } catch (caught) {
    if (caught instanceof VmModelError) return;
    throw caught;
  }
  const printed = render(value);
  if (render(parse(printed)) !== printed) throw new Error('what was printed reads differently');
}

function readDomainJson(text: string): void {
  roundTrip(text, parseDomainJson, (domain) => renderDomainJson(domain));
}

function readDomainXml(text: string): void {
  roundTrip(text, parseDomainXml, (spec) => renderDomainXml(spec));
}

function readVmiJson(text: string): void {
  roundTrip(text, parseVmiJson, renderVmiJson);
}
