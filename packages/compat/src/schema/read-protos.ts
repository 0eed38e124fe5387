import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import protobuf from 'protobufjs';

import { CompatError } from '../errors.ts';
import { type Schema, SCALARS, type SchemaField, type SchemaMessage, type SchemaRpc } from './model.ts';
import { readDescriptorSet } from './read-descriptors.ts';

/**
 * Reads a folder of proto files, one proto file, or a descriptor set.
 *
 * @throws {CompatError} `BadOption` for a path with nothing to read, `DecodeFailed` for what cannot be read.
 */
export function readSchema(path: string): Schema {
  const paths = protoFilesOf(path);
  if (paths.length > 0) return readProtoTexts(chooseTexts(paths));
  if (statSync(path).isDirectory()) throw new CompatError('BadOption', `there is no .proto file below ${path}`);
  try {
    return readDescriptorSet(readFileSync(path));
  } catch (caught) {
    const remedy = 'name a folder of .proto files, one of them, or what protoc --descriptor_set_out writes';
    throw new CompatError('BadOption', `${path} is neither .proto file nor descriptor set: ${remedy}`, {
      cause: caught,
    });
  }
}

/** KubeVirt's own files, if there are any: its tree has hundreds of others below `vendor`. */
function chooseTexts(paths: readonly string[]): ReadonlyMap<string, string> {
  const texts = paths.map((file) => [file, readFileSync(file, 'utf8')] as const);
  const own = texts.filter(([, text]) => /^\s*package\s+kubevirt\./m.test(text));
  return new Map(own.length > 0 ? own : texts);
}

function protoFilesOf(path: string): readonly string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new CompatError('BadOption', `${path} does not exist`);
  if (!stats.isDirectory()) return path.endsWith('.proto') ? [path] : [];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.proto'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/**
 * Reads proto texts by their paths. All files are read as one set, so that imports need no look-up.
 *
 * @throws {CompatError} `DecodeFailed`, with the file.
 */
export function readProtoTexts(texts: ReadonlyMap<string, string>): Schema {
  const root = new protobuf.Root();
  for (const [path, text] of texts) {
    try {
      const { imports = [] } = protobuf.parse(text, root, { keepCase: true });
      for (const name of imports) addWellKnown(root, name);
    } catch (caught) {
      throw new CompatError('DecodeFailed', `${path}: ${String(caught)}`, { cause: caught });
    }
  }
  try {
    root.resolveAll();
  } catch (caught) {
    const where = [...texts.keys()].join(', ');
    throw new CompatError('DecodeFailed', `${where}: ${String(caught)}`, { cause: caught });
  }
  const elements = [...everythingIn(root)];
  const rpcs = elements.filter((element) => element instanceof protobuf.Service).flatMap(rpcsOf);
  const messages = elements.filter((element) => element instanceof protobuf.Type).map(describe);
  return {
    rpcs: new Map(rpcs.map((rpc) => [rpc.path, rpc])),
    messages: new Map(messages.map((message) => [message.fullName, message])),
  };
}

/** Adds one of protobuf's own files (`google/protobuf/empty.proto`); others have to be among those that are read. */
function addWellKnown(root: protobuf.Root, name: string): void {
  const file = protobuf.common.get(name);
  if (file?.nested !== undefined) root.addJSON(file.nested);
}

function* everythingIn(namespace: protobuf.NamespaceBase): Iterable<protobuf.ReflectionObject> {
  for (const element of namespace.nestedArray) {
    yield element;
    if (element instanceof protobuf.Namespace) yield* everythingIn(element);
  }
}

function rpcsOf(service: protobuf.Service): readonly SchemaRpc[] {
  return service.methodsArray.map((method) => ({
    path: `/${nameOf(service)}/${method.name}`,
    request: method.resolvedRequestType === null ? method.requestType : nameOf(method.resolvedRequestType),
    response: method.resolvedResponseType === null ? method.responseType : nameOf(method.resolvedResponseType),
    isStreaming: method.requestStream === true || method.responseStream === true,
  }));
}

function describe(type: protobuf.Type): SchemaMessage {
  const ranges = (type.reserved as readonly (readonly number[] | string)[] | undefined) ?? [];
  return {
    fullName: nameOf(type),
    fields: type.fieldsArray.map(describeField),
    reserved: ranges.flatMap((range) =>
      typeof range === 'string' ? [] : [[range[0] ?? 0, range[1] ?? range[0] ?? 0] as const],
    ),
  };
}

function describeField(field: protobuf.Field): SchemaField {
  const { name, id: number } = field;
  const isOptional = field.options?.['proto3_optional'] === true;
  const oneof = field.partOf === null || isOptional ? undefined : field.partOf.name;
  const type = typeOf(field);
  if (field instanceof protobuf.MapField) return { name, number, kind: 'map', type, key: field.keyType, oneof };
  return { name, number, kind: field.repeated ? 'repeated' : 'singular', type, key: undefined, oneof };
}

function typeOf(field: protobuf.Field): string {
  if (SCALARS.has(field.type)) return field.type;
  if (field.resolvedType instanceof protobuf.Enum) return 'enum';
  return field.resolvedType === null ? field.type : nameOf(field.resolvedType);
}

function nameOf(element: protobuf.ReflectionObject): string {
  return element.fullName.replace(/^\./, '');
}
