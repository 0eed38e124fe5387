import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** Types with a meaning of their own in the table. */
const NAMED_KINDS: Readonly<Record<string, string>> = {
  Int32: 'int32',
  Int64: 'int64',
  Uint: 'uint',
  Uint32: 'uint32',
  Quantity: 'quantity',
  Timestamp: 'string',
};

const FILES = ['vmi', 'metadata', 'devices', 'networks', 'volumes', 'status', 'migration-state'];

type Fields = Map<string, string>;

/** Reads the interfaces of `src/vmi` and writes down what type each field has. Syntax is enough: they are plain. */
class Collector {
  readonly #interfaces = new Map<string, ts.InterfaceDeclaration>();
  readonly #aliases = new Map<string, ts.TypeNode>();
  readonly types = new Map<string, Fields>();

  constructor(root: string) {
    for (const name of FILES) {
      const file = join(root, `src/vmi/${name}.ts`);
      const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
      for (const statement of source.statements) {
        if (ts.isInterfaceDeclaration(statement)) this.#interfaces.set(statement.name.text, statement);
        if (ts.isTypeAliasDeclaration(statement)) this.#aliases.set(statement.name.text, statement.type);
      }
    }
  }

  /** Collects a named interface, and all that it is made of. */
  collect(name: string): string {
    if (!this.types.has(name)) {
      this.types.set(name, new Map());
      this.types.set(name, this.#fieldsOfInterface(name));
    }
    return name;
  }

  #fieldsOfInterface(name: string): Fields {
    const declaration = this.#interfaces.get(name);
    if (declaration === undefined) throw new Error(`no interface ${name} in src/vmi`);
    const fields: Fields = new Map();
    for (const { expression, typeArguments } of declaration.heritageClauses?.flatMap(({ types }) => types) ?? []) {
      const base = expression.getText() === 'Partial' ? typeArguments?.[0]?.getText() : expression.getText();
      for (const [key, type] of this.#fieldsOfInterface(base ?? '')) {
        fields.set(key, expression.getText() === 'Partial' ? type.replace('!', '') : type);
      }
    }
    return new Map([...fields, ...this.#fieldsOfMembers(name, declaration.members)]);
  }

  #fieldsOfMembers(owner: string, members: ts.NodeArray<ts.TypeElement>): Fields {
    const fields: Fields = new Map();
    for (const member of members) {
      if (!ts.isPropertySignature(member) || member.type === undefined) throw new Error(`${owner}: no plain field`);
      const key = member.name.getText();
      const type = this.#kindOf(member.type, `${owner}.${key}`);
      fields.set(key, member.questionToken === undefined ? `${type}!` : type);
    }
    return fields;
  }

  #kindOf(type: ts.TypeNode, path: string): string {
    if (ts.isArrayTypeNode(type)) return `[]${this.#kindOf(type.elementType, path)}`;
    if (ts.isTypeLiteralNode(type)) return this.#inline(path, this.#fieldsOfMembers(path, type.members));
    if (ts.isUnionTypeNode(type)) return this.#kindOfUnion(type, path);
    if (ts.isIntersectionTypeNode(type)) return this.#kindOfIntersection(type, path);
    if (ts.isTypeReferenceNode(type)) return this.#kindOfReference(type, path);
    if (ts.isLiteralTypeNode(type)) return 'string';
    switch (type.getText()) {
      case 'string':
        return 'string';
      case 'boolean':
        return 'bool';
      case 'number':
        return 'int';
      case 'object':
        return 'object';
      case 'unknown':
        return 'any';
      default:
        throw new Error(`${path}: no kind for ${type.getText()}`);
    }
  }

  #kindOfUnion({ types }: ts.UnionTypeNode, path: string): string {
    const [first, ...rest] = types;
    if (first !== undefined && rest.length === 1 && rest[0]?.getText() === 'null')
      return `${this.#kindOf(first, path)}?`;
    const isText = types.every((one) => ts.isLiteralTypeNode(one) || one.getText() === '(string & {})');
    if (!isText) throw new Error(`${path}: no kind for a union`);
    return 'string';
  }

  #kindOfIntersection({ types }: ts.IntersectionTypeNode, path: string): string {
    const fields = types.flatMap((one) =>
      ts.isTypeLiteralNode(one)
        ? [...this.#fieldsOfMembers(path, one.members)]
        : [...this.#fieldsOfInterface(one.getText())],
    );
    return this.#inline(path, new Map(fields));
  }

  #kindOfReference(type: ts.TypeReferenceNode, path: string): string {
    const name = type.typeName.getText();
    const kind = NAMED_KINDS[name];
    if (kind !== undefined) return kind;
    const [, value] = type.typeArguments ?? [];
    if (name === 'Record' && value !== undefined) return `{}${this.#kindOf(value, path)}`;
    const alias = this.#aliases.get(name);
    return alias === undefined ? this.collect(name) : this.#kindOf(alias, path);
  }

  #inline(path: string, fields: Fields): string {
    this.types.set(path, fields);
    return path;
  }
}

/** The text of `src/gen/vmi-table.gen.ts`. */
export function renderVmiTable(root: string): string {
  const collector = new Collector(root);
  collector.collect('Vmi');
  const out = [
    '// Generated by scripts/gen.ts from src/vmi. Do not edit.\n',
    '/**',
    ' * The type of each field of a VMI: a scalar, or the name of a type of this table; `[]` before it makes it a list,',
    ' * `{}` an object with any keys; `!` after it says that the field is always there, `?` that it may be null.',
    ' */',
    'export const VMI_TABLE: Readonly<Record<string, Readonly<Record<string, string>>>> = {',
  ];
  for (const [name, fields] of [...collector.types].sort(([a], [b]) => (a < b ? -1 : 1))) {
    out.push(`  ${/^\w+$/.test(name) ? name : `'${name}'`}: {`);
    for (const [key, type] of fields) out.push(`    ${key}: '${type}',`);
    out.push('  },');
  }
  out.push('};\n');
  return out.join('\n');
}
