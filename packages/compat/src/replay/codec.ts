import { parseDomainJson, parseJson, renderDomainJson } from '@virtwire/vm-model';
import { EMBEDDED, type EmbeddedField } from '@virtwire/vm-model/payloads';
import type { RecordedMessage } from './captures.ts';
import { isSameButForMaps } from './canonical.ts';
import { codecOf, documentsIn } from './documents.ts';
import type { MessageReader } from './recorded-json.ts';
import type { SampleDocument } from './recordings.ts';

/** What is known of a message beside its bytes. */
export interface CodecContext {
  /** Whether the recorded peer took the JSON of a field. */
  readonly isWellFormed: (field: EmbeddedField) => boolean;
  /** True when the message comes from a release newer than all that are known, which may have more fields. */
  readonly isNewer: boolean;
  readonly isRequest: boolean;
}

const INFO_PACKAGES = /^kubevirt\.(cmd|notify)\.info\./;
const MAX_FLAWS = 3;

/** Why the JSON within a message cannot be read, or reads differently once it was printed; undefined when all is well. */
function embeddedProblem(message: unknown, type: string, { isWellFormed }: CodecContext): string | undefined {
  for (const { field, text, isUtf8 } of documentsIn(message, type)) {
    if (!isWellFormed(field)) continue;
    if (!isUtf8) return `${field} is no UTF-8`;
    const payload = EMBEDDED[field] as { parse(text: string): unknown; render(value: unknown): string };
    const value = payload.parse(text);
    const printed = payload.render(value);
    if (payload.render(payload.parse(printed)) !== printed) return `${field} reads differently once it was printed`;
    const doubled = doubledKey(value, '') ?? doubledKey(parseJson(printed), '');
    if (doubled !== undefined) return `${field} has a key in the wrong case: ${doubled}`;
  }
  return undefined;
}

/** A key that stands beside the same one in another case: printing adds the key that the reader has missed. */
function doubledKey(value: unknown, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const seen = new Set<string>();
  for (const [key, item] of Object.entries(value)) {
    const found = seen.has(key.toLowerCase()) ? `${path}${key}` : doubledKey(item, `${path}${key}.`);
    if (found !== undefined) return found;
    seen.add(key.toLowerCase());
  }
  return undefined;
}

/** Why a message does not come back as it was, or is none of this protocol; undefined when all is well. */
export function codecProblem(
  { type, base64, protobufJSON }: RecordedMessage,
  context: CodecContext,
  reader: MessageReader,
): string | undefined {
  const bytes = Buffer.from(base64, 'base64');
  const found = reader.wireFlaws(type, bytes);
  if (found === undefined) return `no message ${type} is known`;
  // Servers ignore what they do not know, and a record that shows the request would show a field that was renumbered.
  const mayHaveMore = context.isNewer || (context.isRequest && protobufJSON !== undefined);
  const flaws = found.filter(({ isUnknownField }) => isUnknownField !== true || !mayHaveMore);
  if (flaws.length > 0) {
    const list = flaws.slice(0, MAX_FLAWS).map(({ path, text }) => (path === '' ? text : `${path} ${text}`));
    return `${type}: ${list.join('; ')}`;
  }
  const codec = codecOf(type);
  // The version handshake is a list of numbers, which the schema has checked.
  if (codec === undefined) return INFO_PACKAGES.test(type) ? undefined : `no message ${type} is known`;
  try {
    const message = codec.decode(bytes);
    if (!isSameButForMaps(bytes, Buffer.from(codec.encode(message).finish()))) return `${type} is encoded differently`;
    const problem = embeddedProblem(message, type, context);
    return problem === undefined ? undefined : `${type}: ${problem}`;
  } catch (caught) {
    return `${type}: ${caught instanceof Error ? caught.message : String(caught)}`;
  }
}

/** Names of documents of samples, and what they are. */
const SAMPLES: readonly (readonly [RegExp, keyof typeof EMBEDDED])[] = [
  [/(^|\/)domainstats-\w+\.json$/, 'DomainStatsResponse.domainStats'],
  [/(^|\/)migrationoptions-\w+\.json$/, 'MigrationRequest.options'],
  [/(^|\/)guestinfo-\w+\.json$/, 'GuestInfoResponse.guestInfoResponse'],
  [/(^|\/)users-\w+\.json$/, 'GuestUserListResponse.guestUserListResponse'],
];

/** Why a sample cannot be read, or is read differently once it was printed; undefined when all is well. */
export function sampleProblem({ path, text }: SampleDocument): string | undefined {
  try {
    const [, field] = SAMPLES.find(([name]) => name.test(path)) ?? [];
    if (field === undefined) return domainProblem(text);
    const payload = EMBEDDED[field] as { parse(text: string): unknown; render(value: unknown): string };
    const printed = payload.render(payload.parse(text));
    return payload.render(payload.parse(printed)) === printed ? undefined : 'is read differently once it was printed';
  } catch (caught) {
    return caught instanceof Error ? caught.message : String(caught);
  }
}

function domainProblem(text: string): string | undefined {
  const printed = renderDomainJson(parseDomainJson(text));
  return renderDomainJson(parseDomainJson(printed)) === printed ? undefined : 'is read differently once it was printed';
}
