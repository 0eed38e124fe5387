import { ProtoError } from '../errors.ts';
import type { FieldHistory, FieldType, FileHistory, MessageHistory, RpcShape, Stretch } from './types.ts';

/** What the text of the history says. */
export interface ReadHistory {
  readonly releases: readonly string[];
  readonly files: readonly FileHistory[];
}

type Writable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer Item)[] ? Item[] : T[K] };
type OpenFile = Writable<FileHistory>;

/**
 * Reads the history's text. One line per element, in the order of the proto files:
 *
 * ```
 * releases v0.17.0 v0.17.1 ...
 * file PATH PACKAGE GO_PACKAGE
 * text SINCE TEXT_ID
 * service NAME
 * rpc NAME REQUEST RESPONSE [PRESENCE]     a second line of the same name: its messages changed
 * message NAME [PRESENCE]
 * field NAME NUMBER TYPE [PRESENCE]        TYPE: string, Cell, repeated:Cell, map:string:DiskInfo
 * ```
 *
 * PRESENCE is `v0.36.3..v0.37.0,v0.41.0..`; left out, it is that of the message, or of all releases.
 */
export function readHistory(text: string): ReadHistory {
  const [head = '', ...lines] = text.trim().split('\n');
  const releases = head.split(' ').slice(1);
  const always: Stretch = { since: releases[0] ?? '', until: undefined };
  const files: OpenFile[] = [];
  for (const line of lines) {
    const [kind = '', ...words] = line.split(' ');
    if (kind === 'file') files.push(openFile(words));
    else readElement(kind, words, files.at(-1) ?? refuse(line), always);
  }
  return { releases, files };
}

function openFile([path = '', pkg = '', goPackage = '']: readonly string[]): OpenFile {
  return { path, package: pkg, goPackage, service: '', rpcs: [], messages: [], texts: [] };
}

function readElement(kind: string, words: readonly string[], file: OpenFile, always: Stretch): void {
  const [name = '', second = '', third = ''] = words;
  if (kind === 'text') file.texts.push({ since: name, textId: second });
  else if (kind === 'service') file.service = `${file.package}.${name}`;
  else if (kind === 'rpc')
    addRpc(file, name, { request: second, response: third, presence: spans(words[3], [always]) });
  else if (kind === 'message') {
    file.messages.push({ name, fullName: `${file.package}.${name}`, presence: spans(words[1], [always]), fields: [] });
  } else if (kind === 'field') addField(file.messages.at(-1) ?? refuse(words.join(' ')), words);
  else refuse(`${kind} ${words.join(' ')}`);
}

function addRpc(file: OpenFile, name: string, shape: RpcShape): void {
  const last = file.rpcs.at(-1);
  const { service } = file;
  if (last?.name !== name) {
    file.rpcs.push({ name, service, path: `/${service}/${name}`, presence: shape.presence, shapes: [shape] });
    return;
  }
  const shapes = [...last.shapes, shape];
  file.rpcs[file.rpcs.length - 1] = { ...last, shapes, presence: joined(shapes.flatMap(({ presence }) => presence)) };
}

function addField(message: MessageHistory, [name = '', number = '', type = '', presence]: readonly string[]): void {
  const field: FieldHistory = {
    message: message.name,
    name,
    number: Number(number),
    type: readType(type),
    presence: spans(presence, message.presence),
  };
  (message.fields as FieldHistory[]).push(field);
}

function readType(text: string): FieldType {
  const [first = '', second = '', third = ''] = text.split(':');
  if (first === 'map') return { kind: 'map', key: second, type: third };
  return first === 'repeated' ? { kind: 'repeated', type: second } : { kind: 'singular', type: first };
}

function spans(text: string | undefined, otherwise: readonly Stretch[]): readonly Stretch[] {
  if (text === undefined) return otherwise;
  return text.split(',').map((part) => {
    const [since = '', until = ''] = part.split('..');
    return { since, until: until === '' ? undefined : until };
  });
}

/** Joins stretches of which one begins where the other ends. */
function joined(stretches: readonly Stretch[]): readonly Stretch[] {
  const out: Stretch[] = [];
  for (const stretch of stretches) {
    const last = out.at(-1);
    if (last?.until === stretch.since) out[out.length - 1] = { since: last.since, until: stretch.until };
    else out.push(stretch);
  }
  return out;
}

function refuse(line: string): never {
  throw new ProtoError('BadRequest', `the schema history has a line that is none: ${line}`);
}
