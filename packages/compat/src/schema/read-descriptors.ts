import { fromBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';

import { CompatError } from '../errors.ts';
import type { Schema, SchemaField, SchemaMessage, SchemaRpc } from './model.ts';

/**
 * Reads a serialised `google.protobuf.FileDescriptorSet`, as protoc and buf write it.
 *
 * @throws {CompatError} `DecodeFailed` for bytes that are none.
 */
export function readDescriptorSet(bytes: Uint8Array): Schema {
  let files: readonly FileDescriptorProto[];
  try {
    files = fromBinary(FileDescriptorSetSchema, bytes).file;
  } catch (caught) {
    throw new CompatError('DecodeFailed', `this is no descriptor set: ${String(caught)}`, { cause: caught });
  }
  const messages = files.flatMap((file) => file.messageType.flatMap((one) => describe(one, file.package)));
  return {
    rpcs: new Map(files.flatMap(rpcsOf).map((rpc) => [rpc.path, rpc])),
    messages: new Map(messages.map((message) => [message.fullName, message])),
  };
}

function rpcsOf(file: FileDescriptorProto): readonly SchemaRpc[] {
  return file.service.flatMap((service) =>
    service.method.map((method) => ({
      path: `/${joined(file.package, service.name)}/${method.name}`,
      request: method.inputType.replace(/^\./, ''),
      response: method.outputType.replace(/^\./, ''),
      isStreaming: method.clientStreaming || method.serverStreaming,
    })),
  );
}

/** A message and those that are declared in it. */
function describe(message: DescriptorProto, scope: string): readonly SchemaMessage[] {
  const fullName = joined(scope, message.name);
  const entries = new Map(
    message.nestedType
      .filter(({ options }) => options?.mapEntry === true)
      .map((entry) => [joined(fullName, entry.name), entry]),
  );
  const own: SchemaMessage = {
    fullName,
    fields: message.field.map((field) => describeField(field, message, entries)),
    // The end of a range is not in it.
    reserved: message.reservedRange.map(({ start, end }) => [start, end - 1] as const),
  };
  const nested = message.nestedType.filter(({ options }) => options?.mapEntry !== true);
  return [own, ...nested.flatMap((one) => describe(one, fullName))];
}

function describeField(
  field: FieldDescriptorProto,
  message: DescriptorProto,
  entries: ReadonlyMap<string, DescriptorProto>,
): SchemaField {
  const { name, number } = field;
  const oneof = isInOneof(field) ? message.oneofDecl[field.oneofIndex]?.name : undefined;
  const [key, value] = entries.get(field.typeName.replace(/^\./, ''))?.field ?? [];
  if (key !== undefined && value !== undefined) {
    return { name, number, kind: 'map', type: typeOf(value), key: typeOf(key), oneof };
  }
  const kind = field.label === FieldDescriptorProto_Label.REPEATED ? 'repeated' : 'singular';
  return { name, number, kind, type: typeOf(field), key: undefined, oneof };
}

/** The index of the first oneof is 0, as is that of a field without one: presence decides. */
function isInOneof(field: FieldDescriptorProto): boolean {
  return Object.hasOwn(field, 'oneofIndex') && !field.proto3Optional;
}

function typeOf(field: FieldDescriptorProto): string {
  if (field.type === FieldDescriptorProto_Type.ENUM) return 'enum';
  if (field.typeName !== '') return field.typeName.replace(/^\./, '');
  return FieldDescriptorProto_Type[field.type].toLowerCase();
}

function joined(scope: string, name: string): string {
  return scope === '' ? name : `${scope}.${name}`;
}
