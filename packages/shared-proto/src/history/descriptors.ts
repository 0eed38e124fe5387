import { create, toBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MessageOptionsSchema,
  FileOptionsSchema,
  MethodDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';

import type { FieldHistory, FileHistory, MessageHistory } from './types.ts';

/** Protobuf's scalars by their keywords, as far as the history has them. */
const SCALARS: Readonly<Record<string, FieldDescriptorProto_Type>> = {
  bool: FieldDescriptorProto_Type.BOOL,
  bytes: FieldDescriptorProto_Type.BYTES,
  double: FieldDescriptorProto_Type.DOUBLE,
  int32: FieldDescriptorProto_Type.INT32,
  int64: FieldDescriptorProto_Type.INT64,
  string: FieldDescriptorProto_Type.STRING,
  uint32: FieldDescriptorProto_Type.UINT32,
  uint64: FieldDescriptorProto_Type.UINT64,
};

/** Renders the descriptors of the files of one release, as protoc does without source information. */
export function renderDescriptorSet(files: readonly FileHistory[]): Uint8Array {
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: files.map(describeFile) }));
}

function describeFile(file: FileHistory): FileDescriptorProto {
  const full = (name: string): string => `.${file.package}.${name}`;
  const method = file.rpcs.map(({ name, shapes: [shape] }) =>
    create(MethodDescriptorProtoSchema, {
      name,
      inputType: full(shape?.request ?? ''),
      outputType: full(shape?.response ?? ''),
    }),
  );
  return create(FileDescriptorProtoSchema, {
    name: file.path,
    package: file.package,
    syntax: 'proto3',
    options: create(FileOptionsSchema, { goPackage: file.goPackage }),
    service: [create(ServiceDescriptorProtoSchema, { name: file.service.slice(file.package.length + 1), method })],
    messageType: file.messages.map(describeMessage),
  });
}

function describeMessage(message: MessageHistory): DescriptorProto {
  return create(DescriptorProtoSchema, {
    name: message.name,
    field: message.fields.map((field) => describeField(field, message)),
    nestedType: message.fields.filter(({ type }) => type.kind === 'map').map((field) => describeEntry(field, message)),
  });
}

function describeField(field: FieldHistory, message: MessageHistory): FieldDescriptorProto {
  const { name, number, type } = field;
  const { LABEL_OPTIONAL, LABEL_REPEATED } = LABELS;
  const label = type.kind === 'singular' ? LABEL_OPTIONAL : LABEL_REPEATED;
  const base = { name, number, label, jsonName: jsonNameOf(name) };
  if (type.kind !== 'map') return create(FieldDescriptorProtoSchema, { ...base, ...describeType(type.type, message) });
  const typeName = `.${message.fullName}.${entryNameOf(name)}`;
  return create(FieldDescriptorProtoSchema, { ...base, type: FieldDescriptorProto_Type.MESSAGE, typeName });
}

const LABELS = {
  LABEL_OPTIONAL: FieldDescriptorProto_Label.OPTIONAL,
  LABEL_REPEATED: FieldDescriptorProto_Label.REPEATED,
} as const;

function describeType(
  type: string,
  { name, fullName }: MessageHistory,
): Pick<FieldDescriptorProto, 'type'> & { typeName?: string } {
  const scalar = SCALARS[type];
  if (scalar !== undefined) return { type: scalar };
  return { type: FieldDescriptorProto_Type.MESSAGE, typeName: `.${fullName.slice(0, -name.length)}${type}` };
}

/** The message that protoc makes up for the entries of a map. */
function describeEntry(field: FieldHistory, message: MessageHistory): DescriptorProto {
  const { type } = field;
  const key = type.kind === 'map' ? type.key : '';
  const part = (name: string, number: number, ofType: string): FieldDescriptorProto =>
    create(FieldDescriptorProtoSchema, {
      name,
      number,
      label: LABELS.LABEL_OPTIONAL,
      jsonName: name,
      ...describeType(ofType, message),
    });
  return create(DescriptorProtoSchema, {
    name: entryNameOf(field.name),
    field: [part('key', 1, key), part('value', 2, type.type)],
    options: create(MessageOptionsSchema, { mapEntry: true }),
  });
}

/** Underscores go, and what follows one is written large; large letters stay (`DisksInfo`). */
function jsonNameOf(name: string): string {
  return name.replaceAll(/_+([a-zA-Z0-9]?)/g, (_all, next: string) => next.toUpperCase());
}

function entryNameOf(name: string): string {
  const camel = jsonNameOf(name);
  return `${camel.charAt(0).toUpperCase()}${camel.slice(1)}Entry`;
}
