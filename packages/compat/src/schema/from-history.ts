import type { FileHistory, SchemaHistory } from '@virtwire/shared-proto/history';

import { type Schema, SCALARS, type SchemaMessage, type SchemaRpc } from './model.ts';

/** The schema of a release of the history. */
export function schemaOfRelease(history: SchemaHistory, release: string): Schema {
  const files = history.filesOf(release);
  return {
    rpcs: new Map(files.flatMap(rpcsOf).map((rpc) => [rpc.path, rpc])),
    messages: new Map(files.flatMap(messagesOf).map((message) => [message.fullName, message])),
  };
}

function rpcsOf(file: FileHistory): readonly SchemaRpc[] {
  return file.rpcs.map(({ path, shapes: [shape] }) => ({
    path,
    request: `${file.package}.${shape?.request ?? ''}`,
    response: `${file.package}.${shape?.response ?? ''}`,
    isStreaming: false,
  }));
}

function messagesOf(file: FileHistory): readonly SchemaMessage[] {
  return file.messages.map(({ fullName, fields }) => ({
    fullName,
    reserved: [],
    fields: fields.map(({ name, number, type }) => ({
      name,
      number,
      kind: type.kind,
      type: SCALARS.has(type.type) ? type.type : `${file.package}.${type.type}`,
      key: type.kind === 'map' ? type.key : undefined,
      oneof: undefined,
    })),
  }));
}
