/** One field of an XDR struct in `protocol/protocol.json`. */
export interface FieldJson {
  readonly name: string;
  readonly type: string;
  readonly array?: 'fixed' | 'variable';
  readonly len?: number;
  readonly max?: number;
}

/** A typedef: another name for a type, optional (nullable) or of fixed length. */
export interface TypedefJson {
  readonly type: string;
  readonly optional?: boolean;
  readonly fixed?: number;
  readonly max?: number;
}

/** One procedure of a program. */
export interface ProcedureJson {
  readonly name: string;
  readonly number: number;
  readonly kind: 'call' | 'event';
  readonly args?: string | null;
  readonly ret?: string | null;
  readonly msg?: string | null;
  readonly stream?: 'read' | 'write' | 'duplex';
  readonly priority?: 'high' | 'low';
  readonly fds?: { readonly clientToServer?: number | 'n'; readonly serverToClient?: number | 'n' };
  readonly since?: string;
}

/** The parts of `protocol/protocol.json` that the generator reads. */
export interface ProtocolJson {
  readonly constants: Readonly<Record<string, number>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly typedefs: Readonly<Record<string, TypedefJson>>;
  readonly structs: Readonly<Record<string, readonly FieldJson[]>>;
  readonly programs: Readonly<
    Record<
      string,
      { readonly program: number; readonly version: number; readonly procedures: readonly ProcedureJson[] }
    >
  >;
}

/** A field type with all typedefs resolved. */
export interface ResolvedType {
  /** A primitive (`int`, `string`, `uuid`, `typed_param` ...) or the short name of a struct. */
  readonly base: string;
  /** `one`, `optional` (nullable), `list` (counted, at most `size`) or `fixed` (exactly `size`). */
  readonly shape: 'one' | 'optional' | 'list' | 'fixed';
  readonly size: number;
}

/** The struct's name in the generated schema: the wire name without `remote_`. */
export function shortName(struct: string): string {
  return struct.replace(/^remote_/, '');
}

/** Name of a procedure in the client: QEMU's and KEEPALIVE's have their program as prefix. */
export function procedureName(program: string, procedure: string): string {
  return program === 'remote' ? procedure : `${program.toUpperCase()}_${procedure}`;
}

/** Follows typedefs down to a primitive or a struct. */
export function resolveField(p: ProtocolJson, field: FieldJson): ResolvedType {
  if (field.type === 'opaque') return { base: 'opaque', shape: 'list', size: field.max ?? 0 };
  const one = resolveName(p, field.type);
  if (field.array === 'variable') return { base: one.base, shape: 'list', size: field.max ?? 0 };
  if (field.array === 'fixed') return { base: one.base, shape: 'fixed', size: field.len ?? 0 };
  return one;
}

function resolveName(p: ProtocolJson, name: string): ResolvedType {
  if (name === 'remote_typed_param') return { base: 'typed_param', shape: 'one', size: 0 };
  const typedef = p.typedefs[name];
  if (typedef !== undefined) {
    if (typedef.type === 'opaque' && typedef.fixed === 16) return { base: 'uuid', shape: 'one', size: 16 };
    const inner = resolveName(p, typedef.type);
    return typedef.optional === true ? { ...inner, shape: 'optional' } : inner;
  }
  if (p.enums[name] !== undefined) return { base: 'int', shape: 'one', size: 0 };
  return { base: p.structs[name] === undefined ? name : shortName(name), shape: 'one', size: 0 };
}

/** Wire structs that code reads by hand, or that nothing refers to. */
const HAND_WRITTEN = new Set(['virNetMessageHeader', 'remote_typed_param', 'remote_error']);

/** All structs that get an entry in the schema. */
export function schemaStructs(p: ProtocolJson): readonly (readonly [string, readonly FieldJson[]])[] {
  return Object.entries(p.structs).filter(([name]) => !HAND_WRITTEN.has(name));
}
