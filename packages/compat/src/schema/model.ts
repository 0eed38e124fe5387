/** A field as far as peers can tell it apart. */
export interface SchemaField {
  readonly name: string;
  readonly number: number;
  readonly kind: 'singular' | 'repeated' | 'map';
  /** A scalar's keyword, `enum`, or the full name of a message; of a map's values. */
  readonly type: string;
  /** Keyword of a map's keys. */
  readonly key: string | undefined;
  /** Name of the oneof that it is a part of; the one that `optional` makes does not count. */
  readonly oneof: string | undefined;
}

/** A message with the numbers and names that it has given up. */
export interface SchemaMessage {
  readonly fullName: string;
  readonly fields: readonly SchemaField[];
  /** Pairs of first and last number. */
  readonly reserved: readonly (readonly [number, number])[];
}

/** A method of a service. */
export interface SchemaRpc {
  /** Path in HTTP/2. */
  readonly path: string;
  /** Full names of messages. */
  readonly request: string;
  readonly response: string;
  readonly isStreaming: boolean;
}

/** What matters of a set of proto files. */
export interface Schema {
  readonly rpcs: ReadonlyMap<string, SchemaRpc>;
  readonly messages: ReadonlyMap<string, SchemaMessage>;
}

/** Keywords of scalars: what is none of them is the name of a message or an enum. */
export const SCALARS: ReadonlySet<string> = new Set([
  ...['double', 'float', 'int32', 'int64', 'uint32', 'uint64', 'sint32', 'sint64', 'fixed32', 'fixed64'],
  ...['sfixed32', 'sfixed64', 'bool', 'string', 'bytes'],
]);
