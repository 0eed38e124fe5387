import {
  createFileRegistry,
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  ScalarType,
  toBinary,
  type UnknownField,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

import { openHistory } from '@virtwire/shared-proto/history';

import { CompatError } from '../../errors.ts';

/** A message as plain data: field names as in the .proto file, absent fields left out, sub-messages as objects. */
export type Fields = Readonly<Record<string, unknown>>;

/** A decoded message, and what the release could not read of it. */
export interface Decoded {
  readonly fields: Fields;
  /** Paths of fields that the release does not know: `options.7`. They are dropped. */
  readonly dropped: readonly string[];
}

/** One RPC of a release. */
export interface ReleaseRpc {
  readonly name: string;
  readonly path: string;
  /** Whether requests carry a VMI. */
  readonly hasVmi: boolean;
  /** Whether the answer is a bare Response; else it holds one. */
  readonly isPlainResponse: boolean;
  decodeRequest(bytes: Uint8Array): Decoded;
  encodeRequest(fields: Fields): Uint8Array;
  decodeResponse(bytes: Uint8Array): Decoded;
  encodeResponse(fields: Fields): Uint8Array;
}

/** The cmd, notify and info services of one release: exactly its RPCs, messages and fields. */
export interface ReleaseSchema {
  readonly release: string;
  readonly rpcs: ReadonlyMap<string, ReleaseRpc>;
  /** The cmd RPCs by name. */
  readonly cmdRpcs: ReadonlyMap<string, ReleaseRpc>;
  readonly notifyRpcs: ReadonlyMap<string, ReleaseRpc>;
  readonly cmdInfo: ReleaseRpc;
  readonly notifyInfo: ReleaseRpc;
  hasService(name: string): boolean;
}

/**
 * Opens the schema of a release.
 *
 * @param release a tag: `v1.3.1`.
 * @throws {CompatError} `SchemaUnknown`.
 */
export function openReleaseSchema(release: string): ReleaseSchema {
  const history = openHistory();
  if (!history.releases.includes(release)) {
    throw new CompatError('SchemaUnknown', `the history of the wire has no release ${release}`);
  }
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, history.descriptorSet(release)));
  const service = (name: string): ReadonlyMap<string, ReleaseRpc> => {
    const found = registry.getService(name);
    if (found === undefined) throw new CompatError('SchemaUnknown', `release ${release} has no service ${name}`);
    return new Map(found.methods.map((method) => [method.name, createRpc(found, method)]));
  };
  const info = (name: string): ReleaseRpc => {
    const [rpc] = service(name).values();
    if (rpc === undefined) throw new CompatError('SchemaUnknown', `release ${release} has an empty service ${name}`);
    return rpc;
  };
  const cmdRpcs = service('kubevirt.cmd.v1.Cmd');
  const notifyRpcs = service('kubevirt.notify.v1.Notify');
  const cmdInfo = info('kubevirt.cmd.info.CmdInfo');
  const notifyInfo = info('kubevirt.notify.info.NotifyInfo');
  const all = [...cmdRpcs.values(), ...notifyRpcs.values(), cmdInfo, notifyInfo];
  return {
    release,
    rpcs: new Map(all.map((rpc) => [rpc.path, rpc])),
    cmdRpcs,
    notifyRpcs,
    cmdInfo,
    notifyInfo,
    hasService: (name) => registry.getService(name) !== undefined,
  };
}

function createRpc(service: DescService, method: DescMethod): ReleaseRpc {
  return {
    name: method.name,
    path: `/${service.typeName}/${method.name}`,
    hasVmi: method.input.fields.some(({ name }) => name === 'vmi'),
    isPlainResponse: method.output.name === 'Response',
    decodeRequest: (bytes) => decode(method.input, bytes),
    encodeRequest: (fields) => encode(method.input, fields),
    decodeResponse: (bytes) => decode(method.output, bytes),
    encodeResponse: (fields) => encode(method.output, fields),
  };
}

function decode(type: DescMessage, bytes: Uint8Array): Decoded {
  try {
    const dropped: string[] = [];
    const fields = toFields(type, fromBinary(type, bytes), '', dropped);
    return { fields, dropped };
  } catch (caught) {
    throw new CompatError('DecodeFailed', `${type.typeName}: ${String(caught)}`, { cause: caught });
  }
}

function encode(type: DescMessage, fields: Fields): Uint8Array {
  return toBinary(type, toMessage(type, fields));
}

type Dynamic = Message & Record<string, unknown> & { readonly $unknown?: UnknownField[] };

/** The names of fields stay those of the .proto file, which do not follow one rule (`VirtualMachineSMBios`, `DisksInfo`). */
function toFields(type: DescMessage, message: Message, path: string, dropped: string[]): Fields {
  const dynamic = message as Dynamic;
  for (const { no } of dynamic.$unknown ?? []) dropped.push(`${path}${no}`);
  const out: Record<string, unknown> = {};
  for (const field of type.fields) {
    const raw = dynamic[field.localName];
    if (raw === undefined) continue;
    const at = `${path}${field.name}.`;
    if (field.fieldKind === 'message') {
      out[field.name] = toFields(field.message, raw as Message, at, dropped);
    } else if (field.fieldKind === 'list') {
      const items = raw as readonly unknown[];
      if (items.length === 0) continue;
      const { listKind } = field;
      out[field.name] =
        listKind === 'message' ? items.map((item) => toFields(field.message, item as Message, at, dropped)) : items;
    } else if (field.fieldKind === 'map') {
      const entries = Object.entries(raw as Record<string, unknown>);
      if (entries.length === 0) continue;
      out[field.name] =
        field.mapKind === 'message'
          ? Object.fromEntries(entries.map(([k, v]) => [k, toFields(field.message, v as Message, at, dropped)]))
          : Object.fromEntries(entries);
    } else if (!isZero(raw)) {
      out[field.name] = raw;
    }
  }
  return out;
}

function isZero(value: unknown): boolean {
  if (value instanceof Uint8Array) return value.length === 0;
  return value === '' || value === 0 || value === 0n || value === false;
}

/** Fields that the release does not know are left out. */
function toMessage(type: DescMessage, fields: Fields): Message {
  const message = create(type) as Dynamic;
  for (const field of type.fields) {
    const raw = fields[field.name];
    if (raw === undefined) continue;
    if (field.fieldKind === 'message') message[field.localName] = toMessage(field.message, raw as Fields);
    else if (field.fieldKind === 'list' && field.listKind === 'message') {
      message[field.localName] = (raw as readonly Fields[]).map((item) => toMessage(field.message, item));
    } else if (field.fieldKind === 'map' && field.mapKind === 'message') {
      message[field.localName] = Object.fromEntries(
        Object.entries(raw as Record<string, Fields>).map(([key, item]) => [key, toMessage(field.message, item)]),
      );
    } else if (field.fieldKind === 'scalar') message[field.localName] = toScalar(field.scalar, raw);
    else message[field.localName] = raw;
  }
  return message;
}

/** Bytes may be given as text, 64-bit numbers as numbers. */
function toScalar(type: ScalarType, raw: unknown): unknown {
  if (type === ScalarType.BYTES && typeof raw === 'string') return new TextEncoder().encode(raw);
  const isLong = type === ScalarType.INT64 || type === ScalarType.UINT64;
  return isLong && typeof raw === 'number' ? BigInt(raw) : raw;
}
