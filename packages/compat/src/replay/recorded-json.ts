import { isDeepStrictEqual } from 'node:util';

import { createFileRegistry, fromBinary, isMessage, toJson } from '@bufbuild/protobuf';
import type { DescMessage, FileRegistry, Message } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { openHistory } from '@virtwire/shared-proto/history';
import { type WireFlaw, wireFlaws } from './wire-rules.ts';

/** A message as captures show it beside its bytes. */
export interface ShownMessage {
  /** Protobuf's JSON; a field that holds JSON reads `@embedded`. Text for a message that cannot be decoded. */
  readonly protobufJSON: unknown;
  /** The JSON of such fields, by dotted path. */
  readonly embedded?: Readonly<Record<string, unknown>>;
}

const EMBEDDED = '@embedded';

/** Reads messages of the newest release that is known. */
export class MessageReader {
  readonly #registry: FileRegistry;

  constructor() {
    const history = openHistory();
    const newest = history.releases.at(-1) ?? '';
    this.#registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, history.descriptorSet(newest)));
  }

  /** Types of the request and the response of a method, as far as it is known. */
  typesOf(method: string): { readonly request: string; readonly response: string } | undefined {
    const [, service = '', name] = method.split('/');
    const found = this.#registry.getService(service)?.methods.find((candidate) => candidate.name === name);
    return found && { request: found.input.typeName, response: found.output.typeName };
  }

  /** The schema of a message; undefined when it is not known. */
  schemaOf(type: string): DescMessage | undefined {
    return this.#registry.getMessage(type);
  }

  /** What in the bytes of a message no encoder of any release writes; undefined when the type is not known. */
  wireFlaws(type: string, bytes: Uint8Array): readonly WireFlaw[] | undefined {
    const schema = this.#registry.getMessage(type);
    return schema && wireFlaws(schema, bytes);
  }

  /** What captures show of a message. */
  show(type: string, bytes: Uint8Array): ShownMessage {
    const shown = this.#decode(type, bytes);
    if (typeof shown === 'string') return { protobufJSON: shown };
    const embedded: Record<string, unknown> = {};
    const protobufJSON = takeEmbedded(shown.json, '', (path, text) => {
      const value = readJson(shown.texts.get(path) ?? text);
      if (typeof value !== 'object' || value === null) return text;
      embedded[path] = value;
      return EMBEDDED;
    });
    return Object.keys(embedded).length === 0 ? { protobufJSON } : { protobufJSON, embedded };
  }

  /** Where the bytes of a message are not what the capture shows; undefined when they are. */
  difference(type: string, bytes: Uint8Array, recorded: ShownMessage): string | undefined {
    const decoded = this.#decode(type, bytes);
    if (typeof recorded.protobufJSON === 'string') {
      return typeof decoded === 'string' ? undefined : `${type} is decoded, and was recorded as undecodable`;
    }
    if (typeof decoded === 'string') return `${type}: ${decoded}`;
    return differenceOf(decoded, recorded.protobufJSON, recorded.embedded ?? {}, '', type);
  }

  #decode(type: string, bytes: Uint8Array): Decoded | string {
    const schema = this.#registry.getMessage(type);
    if (schema === undefined) return `undecodable: no message ${type} is known`;
    try {
      const message = fromBinary(schema, bytes);
      const decoded: Decoded = { json: toJson(schema, message), texts: new Map() };
      collectTexts(message, this.#registry, '', decoded.texts);
      return decoded;
    } catch (caught) {
      return `undecodable: ${caught instanceof Error ? caught.message : String(caught)}`;
    }
  }
}

interface Decoded {
  readonly json: unknown;
  /** Text of fields of bytes, which protobuf's JSON shows in base64. */
  readonly texts: Map<string, string>;
}

function collectTexts(message: Message, registry: FileRegistry, path: string, into: Map<string, string>): void {
  const schema = registry.getMessage(message.$typeName);
  for (const field of schema?.fields ?? []) {
    const at = `${path}${field.jsonName}`;
    const value: unknown = (message as unknown as Readonly<Record<string, unknown>>)[field.localName];
    if (value instanceof Uint8Array) into.set(at, Buffer.from(value).toString('utf8'));
    else if (isMessage(value)) collectTexts(value, registry, `${at}.`, into);
  }
}

/** The JSON of a text; undefined for none. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function takeEmbedded(value: unknown, path: string, take: (path: string, text: string) => string): unknown {
  if (typeof value === 'string') return take(path, value);
  if (!isObject(value)) return value;
  const fields = Object.entries(value);
  return Object.fromEntries(
    fields.map(([key, field]) => [key, takeEmbedded(field, path === '' ? key : `${path}.${key}`, take)]),
  );
}

/** Compares a decoded message with the recorded one, field by field. */
function differenceOf(
  decoded: Decoded,
  recorded: unknown,
  embedded: Readonly<Record<string, unknown>>,
  path: string,
  type: string,
): string | undefined {
  const compare = (actual: unknown, expected: unknown, at: string): string | undefined => {
    if (expected === EMBEDDED && typeof actual === 'string') {
      const json = readJson(decoded.texts.get(at) ?? actual);
      return isDeepStrictEqual(json, embedded[at]) ? undefined : `${type}: the JSON of ${at} is not the recorded one`;
    }
    if (!isObject(actual) || !isObject(expected)) {
      return isDeepStrictEqual(actual, expected) ? undefined : `${type}: ${at || 'it'} is not what was recorded`;
    }
    for (const key of new Set([...Object.keys(actual), ...Object.keys(expected)])) {
      const found = compare(actual[key], expected[key], at === '' ? key : `${at}.${key}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return compare(decoded.json, recorded, path);
}
