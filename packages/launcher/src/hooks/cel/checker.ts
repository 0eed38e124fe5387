import type { Functions, Overload } from './functions.ts';
import { reportAt } from './report.ts';
import type { CelError } from './report.ts';
import type { FieldType, Schema, StructType } from './schema.ts';
import { CONTAINER } from './schema.ts';
import type { Comprehension, Node } from './syntax.ts';
import type { CelType } from './types.ts';
import { formatType, isSameType, scalarType, Unifier } from './types.ts';
import { TypeValue } from './values.ts';

/** What a name in an expression means. */
export type Reference =
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'type'; readonly value: TypeValue; readonly struct: StructType | undefined };

/** An expression whose types are right. */
export interface Checked {
  readonly type: CelType;
  /** The meaning of names, of structs that are made, and of selections that are names with dots. */
  readonly references: ReadonlyMap<Node, Reference>;
}

/** What a checker needs. */
export interface CheckerDeps {
  readonly schema: Schema;
  readonly functions: Functions;
  readonly variables: ReadonlyMap<string, CelType>;
}

type Scope = ReadonlyMap<string, CelType>;

const BOOL = scalarType('bool');
const DYN = scalarType('dyn');
const ERROR = scalarType('error');

/** Types that have a name in every expression. */
const NAMED_TYPES: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ...(['bool', 'bytes', 'double', 'int', 'null_type', 'string', 'uint'] as const).map(
    (kind) => [kind, scalarType(kind)] as const,
  ),
  ['list', { kind: 'list', of: DYN }],
  ['map', { kind: 'map', key: DYN, of: DYN }],
  ['type', { kind: 'type', of: DYN }],
  ['google.protobuf.Timestamp', scalarType('timestamp')],
  ['google.protobuf.Duration', scalarType('duration')],
]);

/** The type in CEL of a field. */
function celTypeOf(type: FieldType, schema: Schema): CelType {
  switch (type.kind) {
    case 'list':
      return { kind: 'list', of: celTypeOf(type.of, schema) };
    case 'map':
      return { kind: 'map', key: scalarType('string'), of: celTypeOf(type.of, schema) };
    case 'struct':
      return { kind: 'struct', name: schema.struct(type.name).celName };
    default:
      return scalarType(type.kind);
  }
}

/**
 * Checks the types of an expression as cel-go does, and finds out what its names mean.
 *
 * @throws {CelError} which tells every mistake with its place.
 * @source cel-go checker/checker.go
 */
export function checkExpression(deps: CheckerDeps, text: string, root: Node): Checked {
  const checker = new Checker(deps, text);
  const type = checker.check(root, new Map());
  checker.throwMistakes();
  return { type: checker.unifier.resolve(type, true), references: checker.references };
}

class Checker {
  readonly unifier = new Unifier();
  readonly references = new Map<Node, Reference>();
  readonly #deps: CheckerDeps;
  readonly #text: string;
  readonly #mistakes: { readonly at: number; readonly error: CelError }[] = [];

  constructor(deps: CheckerDeps, text: string) {
    this.#deps = deps;
    this.#text = text;
  }

  throwMistakes(): void {
    const mistakes = this.#mistakes.sort((a, b) => a.at - b.at);
    const [first] = mistakes;
    if (first === undefined) return;
    first.error.message = mistakes.map(({ error }) => error.message).join('\n');
    throw first.error;
  }

  #report(at: number, message: string): CelType {
    this.#mistakes.push({ at, error: reportAt(this.#text, at, message) });
    return ERROR;
  }

  check(node: Node, scope: Scope): CelType {
    switch (node.kind) {
      case 'const':
        return constantType(node.value);
      case 'ident':
        return this.#lookUp(node, node.name, scope) ?? this.#undeclared(node.at, node.name);
      case 'select':
        return this.#select(node, scope);
      case 'call':
        return this.#call(node, scope);
      case 'list':
        return { kind: 'list', of: this.#joined(node.elements, scope) };
      case 'map':
        return {
          kind: 'map',
          key: this.#joined(
            node.entries.map(([key]) => key),
            scope,
          ),
          of: this.#joined(
            node.entries.map(([, value]) => value),
            scope,
          ),
        };
      case 'struct':
        return this.#struct(node, scope);
      case 'comprehension':
        return this.#comprehension(node, scope);
    }
  }

  #undeclared(at: number, name: string): CelType {
    return this.#report(at, `undeclared reference to '${name}' (in container '${CONTAINER}')`);
  }

  #lookUp(node: Node, name: string, scope: Scope): CelType | undefined {
    const isRoot = name.startsWith('.');
    const variable = scope.get(name) ?? this.#deps.variables.get(name);
    if (variable !== undefined) {
      this.references.set(node, { kind: 'variable', name });
      return variable;
    }
    const absolute = name.slice(isRoot ? 1 : 0);
    const { schema } = this.#deps;
    const struct = (isRoot ? undefined : schema.byCelName(`${CONTAINER}.${name}`)) ?? schema.byCelName(absolute);
    const type: CelType | undefined = struct ? { kind: 'struct', name: struct.celName } : NAMED_TYPES.get(absolute);
    if (type === undefined) return undefined;
    this.references.set(node, { kind: 'type', value: new TypeValue(struct?.celName ?? absolute), struct });
    return { kind: 'type', of: type };
  }

  #select(node: Node & { kind: 'select' }, scope: Scope): CelType {
    const name = node.isTest ? undefined : qualifiedName(node);
    const named = name === undefined ? undefined : this.#lookUp(node, name, scope);
    if (named !== undefined) return named;
    const operand = this.unifier.resolve(this.check(node.operand, scope));
    const type = this.#field(operand, node.field, node.at);
    return node.isTest ? BOOL : type;
  }

  #field(operand: CelType, field: string, at: number): CelType {
    switch (operand.kind) {
      case 'map':
        return this.unifier.resolve(operand.of);
      case 'struct':
        return this.#fieldOf(operand.name, field, at);
      case 'param':
        this.unifier.fits([DYN], [operand]);
        return DYN;
      case 'dyn':
      case 'error':
        return DYN;
      default:
        this.#report(at, `type '${formatType(operand)}' does not support field selection`);
        return DYN;
    }
  }

  #fieldOf(celName: string, name: string, at: number): CelType {
    const { schema } = this.#deps;
    const field = schema.byCelName(celName)?.find(name)?.at(-1);
    return field === undefined ? this.#report(at, `undefined field '${name}'`) : celTypeOf(field.type, schema);
  }

  #call(node: Node & { kind: 'call' }, scope: Scope): CelType {
    const args = node.args.map((arg) => this.check(arg, scope));
    const given = node.target === undefined ? args : [this.check(node.target, scope), ...args];
    const [first] = node.args;
    if (node.name === 'has' && first !== undefined) return this.#report(first.at, 'invalid argument to has() macro');
    const overloads = this.#deps.functions.overloads(node.name);
    if (overloads === undefined) return this.#undeclared(node.at, node.name);
    if (node.name === '_&&_' || node.name === '_||_') {
      for (const [index, arg] of node.args.entries()) this.#expect(arg, BOOL, args[index] ?? DYN);
      return BOOL;
    }
    return this.#resolve(node, overloads, given);
  }

  #resolve(node: Node & { kind: 'call' }, overloads: readonly Overload[], given: readonly CelType[]): CelType {
    let result: CelType | undefined;
    for (const overload of overloads) {
      if (overload.isMethod !== (node.target !== undefined)) continue;
      const fresh = this.#instance(overload);
      if (!this.unifier.fits(given, fresh.params)) continue;
      const found = this.unifier.resolve(fresh.result);
      if (result === undefined) result = found;
      else if (result.kind !== 'dyn' && !isSameType(result, found)) result = DYN;
    }
    if (result !== undefined) return result;
    const shown = given.map((type) => formatType(this.unifier.resolve(type, true)));
    const signature =
      node.target === undefined ? `(${shown.join(', ')})` : `${shown[0] ?? ''}.(${shown.slice(1).join(', ')})`;
    return this.#report(node.at, `found no matching overload for '${node.name}' applied to '${signature}'`);
  }

  /** An overload with parameters of its own, for one call. */
  #instance({ isMethod, params, result }: Overload): Overload {
    const made = new Map<number, CelType>();
    const fresh = (type: CelType): CelType => {
      switch (type.kind) {
        case 'param': {
          const known = made.get(type.id) ?? this.unifier.newParameter();
          made.set(type.id, known);
          return known;
        }
        case 'list':
        case 'type':
          return { kind: type.kind, of: fresh(type.of) };
        case 'map':
          return { kind: 'map', key: fresh(type.key), of: fresh(type.of) };
        default:
          return type;
      }
    };
    return { isMethod, params: params.map(fresh), result: fresh(result) };
  }

  #joined(nodes: readonly Node[], scope: Scope): CelType {
    let joined: CelType | undefined;
    for (const node of nodes) joined = this.unifier.join(joined, this.check(node, scope));
    return joined ?? this.unifier.newParameter();
  }

  #struct(node: Node & { kind: 'struct' }, scope: Scope): CelType {
    const named = this.#lookUp(node, node.typeName, scope);
    if (named === undefined) return this.#undeclared(node.at, node.typeName);
    const reference = this.references.get(node);
    if (reference?.kind !== 'type') return this.#report(node.at, `'${formatType(named)}' is not a type`);
    if (reference.struct === undefined) {
      return this.#report(node.at, `'${reference.value.name}' is not a message type`);
    }
    for (const { name, value, at } of node.fields) {
      const given = this.check(value, scope);
      const wanted = this.#fieldOf(reference.struct.celName, name, at);
      if (this.unifier.fits([wanted], [given])) continue;
      const types = `'${formatType(wanted)}' but provided type is '${formatType(this.unifier.resolve(given))}'`;
      this.#report(at, `expected type of field '${name}' is ${types}`);
    }
    return { kind: 'struct', name: reference.struct.celName };
  }

  #comprehension(node: Comprehension, outer: Scope): CelType {
    const range = this.unifier.resolve(this.check(node.range, outer));
    const accumulated = this.check(node.initial, outer);
    const scope = new Map(outer).set(node.accumulator, accumulated);
    const inner = new Map(scope).set(node.variable, this.#elementType(node, range));
    this.#expect(node.condition, BOOL, this.check(node.condition, inner));
    this.#expect(node.step, accumulated, this.check(node.step, inner));
    return this.unifier.resolve(this.check(node.result, scope));
  }

  #elementType({ range: { at } }: Comprehension, range: CelType): CelType {
    switch (range.kind) {
      case 'list':
        return range.of;
      case 'map':
        return range.key;
      case 'param':
        this.unifier.fits([DYN], [range]);
        return DYN;
      case 'dyn':
      case 'error':
        return DYN;
      default: {
        const why = 'cannot be range of a comprehension (must be list, map, or dynamic)';
        return this.#report(at, `expression of type '${formatType(range)}' ${why}`);
      }
    }
  }

  #expect(node: Node, wanted: CelType, given: CelType): void {
    if (this.unifier.fits([wanted], [given])) return;
    const types = `'${formatType(this.unifier.resolve(wanted))}' but found '${formatType(this.unifier.resolve(given))}'`;
    this.#report(node.at, `expected type ${types}`);
  }
}

function constantType(value: unknown): CelType {
  switch (typeof value) {
    case 'boolean':
      return BOOL;
    case 'bigint':
      return scalarType('int');
    case 'number':
      return scalarType('double');
    case 'string':
      return scalarType('string');
    default:
      if (value === null) return scalarType('null_type');
      return scalarType(value instanceof Uint8Array ? 'bytes' : 'uint');
  }
}

/** `a.b.c` of a selection that consists of names only. */
function qualifiedName(node: Node): string | undefined {
  if (node.kind === 'ident') return node.name;
  if (node.kind !== 'select' || node.isTest) return undefined;
  const operand = qualifiedName(node.operand);
  return operand === undefined ? undefined : `${operand}.${node.field}`;
}
