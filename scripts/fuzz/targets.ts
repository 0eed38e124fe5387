import { Duplex } from 'node:stream';
import { normaliseAuthority } from '@virtwire/shared-proto';
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
import { openCmdServer, openInfo, openNotifyServer } from './server-targets.ts';
import type { Target } from './target.ts';

/** Makes a target; `share` is its part of all inputs. */
export interface TargetPlan {
  readonly share: number;
  open(corpus: Corpus): Promise<Target>;
}

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
