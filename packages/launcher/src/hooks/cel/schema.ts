import { LIBVIRT_TYPES } from './gen/libvirt-types.gen.ts';
import { VMI_TYPES } from './gen/vmi-types.gen.ts';

/** Integers with their range in Go, for what CEL's 64 bits do not fit into. */
export interface IntegerType {
  readonly kind: 'int' | 'uint';
  readonly bits: 8 | 16 | 32 | 64;
}

/** What a field of a Go struct holds; pointers are seen through, as cel-go does. */
export type FieldType =
  | IntegerType
  | { readonly kind: 'string' | 'bool' | 'bytes' | 'timestamp' }
  | { readonly kind: 'list' | 'map'; readonly of: FieldType }
  | { readonly kind: 'struct'; readonly name: string };

/** One field of a struct. */
export interface Field {
  /** In Go. */
  readonly name: string;
  /** In JSON; of the VMI's types only, and none of an embedded type without a key. */
  readonly jsonKey: string | undefined;
  readonly type: FieldType;
  readonly isPointer: boolean;
  readonly isEmbedded: boolean;
  /** Place in XML; of libvirt's types only. */
  readonly place: string;
  readonly omitsZero: boolean;
}

/** A Go struct. */
export interface StructType {
  /** In this package's tables. */
  readonly name: string;
  /** In CEL. */
  readonly celName: string;
  readonly fields: readonly Field[];
  /** The way to a field by its name, through the embedded types that promote it; undefined when there is none. */
  find(name: string): readonly Field[] | undefined;
}

/** The type of `domainSpec` and of what a mutation makes. */
export const DOMAIN_TYPE = 'Domain';
/** The type of `vmi`. */
export const VMI_TYPE = 'v1.VirtualMachineInstance';
/** What names without a package belong to. */
export const CONTAINER = 'libvirtxml';

const INTEGER = /^(u?int)(8|16|32|64)?$/;

function fieldType(text: string): FieldType {
  const bare = text.replace(/^\*/, '');
  if (bare.startsWith('[]')) return { kind: 'list', of: fieldType(bare.slice(2)) };
  if (bare.startsWith('{}')) return { kind: 'map', of: fieldType(bare.slice(2)) };
  const integer = INTEGER.exec(bare);
  if (integer !== null) {
    return { kind: integer[1] as 'int' | 'uint', bits: Number(integer[2] ?? 64) as IntegerType['bits'] };
  }
  if (bare === 'string' || bare === 'bool' || bare === 'bytes' || bare === 'timestamp') return { kind: bare };
  return { kind: 'struct', name: bare };
}

function fieldOf(row: string, hasJson: boolean): Field {
  const [name = '', type = '', marked = ''] = row.trim().split(' ');
  const isEmbedded = marked.startsWith('&');
  const place = marked.replace(/^&/, '').replace(/\?$/, '');
  return {
    name,
    jsonKey: hasJson && place !== '' && place !== '-' ? place : undefined,
    type: fieldType(type),
    isPointer: type.startsWith('*'),
    isEmbedded,
    place,
    omitsZero: marked.endsWith('?'),
  };
}

/** Finds Go structs by their names in the tables; each is read once. */
export class Schema {
  readonly #types = new Map<string, StructType>();

  /** @throws {TypeError} for a name that the tables do not have; they name no such. */
  struct(name: string): StructType {
    const known = this.#types.get(name);
    if (known !== undefined) return known;
    const made = this.#read(name);
    if (made === undefined) throw new TypeError(`no type ${name}`);
    this.#types.set(name, made);
    return made;
  }

  /** A struct by its name in CEL, as `libvirtxml.Domain`. */
  byCelName(celName: string): StructType | undefined {
    const bare = celName.startsWith(`${CONTAINER}.`) ? celName.slice(CONTAINER.length + 1) : celName;
    const isLibvirt = bare !== celName;
    if (!Object.hasOwn(isLibvirt ? LIBVIRT_TYPES : VMI_TYPES, bare)) return undefined;
    return this.struct(bare);
  }

  #read(name: string): StructType | undefined {
    const isLibvirt = Object.hasOwn(LIBVIRT_TYPES, name);
    const rows = isLibvirt ? LIBVIRT_TYPES[name] : VMI_TYPES[name];
    if (rows === undefined) return undefined;
    const fields = rows
      .split('\n')
      .filter((row) => row.trim() !== '')
      .map((row) => fieldOf(row, !isLibvirt));
    const paths = new Map<string, readonly Field[] | undefined>();
    const search = (wanted: string): readonly Field[] | undefined => {
      const own = fields.find((field) => field.name === wanted || field.jsonKey === wanted);
      if (own !== undefined) return [own];
      for (const field of fields) {
        if (!field.isEmbedded || field.type.kind !== 'struct') continue;
        const inner = this.struct(field.type.name).find(wanted);
        if (inner !== undefined) return [field, ...inner];
      }
      return undefined;
    };
    return {
      name,
      celName: isLibvirt ? `${CONTAINER}.${name}` : name.replace(/#\d+$/, ''),
      fields,
      find(wanted) {
        if (!paths.has(wanted)) paths.set(wanted, search(wanted));
        return paths.get(wanted);
      },
    };
  }
}
