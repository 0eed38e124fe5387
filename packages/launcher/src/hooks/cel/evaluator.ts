import type { Reference } from './checker.ts';
import { callCost, COST, CostMeter } from './cost.ts';
import type { Functions } from './functions.ts';
import { concatenate, index, isEqual, isIn, typeName } from './operators.ts';
import type { Field, Schema } from './schema.ts';
import { codePoints } from './report.ts';
import type { Comprehension, Node } from './syntax.ts';
import type { CelValue, TimeValue } from './values.ts';
import { CelFailure, isList, MapValue, StructValue, TypeValue, zeroOf } from './values.ts';

/** What an expression is evaluated with. */
export interface EvaluatorDeps {
  readonly schema: Schema;
  readonly functions: Functions;
  /** The value of a time that is not set. */
  readonly epoch: TimeValue;
  readonly costLimit: number;
}

/** Variables, the innermost first; a failure is thrown at whoever asks for it. */
interface Scope {
  readonly name: string;
  value: CelValue | CelFailure;
  readonly outer: Scope | undefined;
}

type Step = (scope: Scope | undefined) => CelValue;

/**
 * Evaluates an expression whose types are right.
 *
 * @throws {CelFailure} when it has no value.
 * @throws {CostExceeded} `deps.costLimit` is what it may cost.
 * @source cel-go interpreter/interpretable.go
 */
export function evaluate(
  deps: EvaluatorDeps,
  root: Node,
  references: ReadonlyMap<Node, Reference>,
  variables: ReadonlyMap<string, CelValue>,
): CelValue {
  return new Compiler(deps, references, variables).compile(root)(undefined);
}

class Compiler {
  readonly #deps: EvaluatorDeps;
  readonly #references: ReadonlyMap<Node, Reference>;
  readonly #variables: ReadonlyMap<string, CelValue>;
  readonly #meter: CostMeter;

  constructor(deps: EvaluatorDeps, references: ReadonlyMap<Node, Reference>, variables: ReadonlyMap<string, CelValue>) {
    this.#deps = deps;
    this.#references = references;
    this.#variables = variables;
    this.#meter = new CostMeter(deps.costLimit);
  }

  compile(node: Node): Step {
    const reference = node.kind === 'struct' ? undefined : this.#references.get(node);
    if (reference?.kind === 'type') return () => reference.value;
    switch (node.kind) {
      case 'const':
        return () => node.value;
      case 'ident':
        return this.#variable(node.name);
      case 'select':
        return this.#select(node);
      case 'call':
        return this.#call(node);
      case 'list': {
        const elements = node.elements.map((element) => this.compile(element));
        return this.#paid(COST.list, (scope) => elements.map((element) => element(scope)));
      }
      case 'map':
        return this.#map(node);
      case 'struct':
        return this.#struct(node);
      case 'comprehension':
        return this.#comprehension(node);
    }
  }

  #paid(cost: number, step: Step): Step {
    return (scope) => {
      const value = step(scope);
      this.#meter.spend(cost);
      return value;
    };
  }

  #variable(name: string): Step {
    return this.#paid(COST.selectOrIdent, (scope) => {
      let at = scope;
      while (at !== undefined && at.name !== name) at = at.outer;
      const value = at === undefined ? this.#variables.get(name) : at.value;
      if (value instanceof CelFailure) throw value;
      if (value === undefined) throw new CelFailure(`no such attribute(s): ${name}`);
      return value;
    });
  }

  #select({ operand, field, isTest }: Node & { kind: 'select' }): Step {
    const of = this.compile(operand);
    if (isTest) return this.#paid(COST.selectOrIdent, (scope) => this.#has(of(scope), field));
    return this.#paid(COST.selectOrIdent, (scope) => this.#get(of(scope), field));
  }

  #get(value: CelValue, name: string): CelValue {
    if (value instanceof MapValue) return index(value, name);
    const path = value instanceof StructValue ? value.type.find(name) : undefined;
    if (path === undefined) throw new CelFailure(`no such key: ${name}`);
    return path.reduce<CelValue>((of, field) => this.#fieldOf(of, field), value);
  }

  #fieldOf(of: CelValue, field: Field): CelValue {
    if (!(of instanceof StructValue)) throw new CelFailure(`no such key: ${field.name}`);
    const value = of.fields.get(field.name);
    if (value !== undefined) return value;
    if (of.isSparse) throw new CelFailure(`field '${field.name}' not set`);
    return zeroOf(field.type, this.#deps.schema, this.#deps.epoch);
  }

  #has(value: CelValue, name: string): boolean {
    if (value instanceof MapValue) return value.has(name);
    let at: CelValue | undefined = value;
    for (const field of (value instanceof StructValue ? value.type.find(name) : undefined) ?? []) {
      at = at instanceof StructValue ? at.fields.get(field.name) : undefined;
    }
    return at !== undefined && at !== value;
  }

  #map({ entries }: Node & { kind: 'map' }): Step {
    const pairs = entries.map(([key, value]) => [this.compile(key), this.compile(value)] as const);
    return this.#paid(
      COST.map,
      (scope) => new MapValue(pairs.map(([key, value]) => [key(scope), value(scope)] as const)),
    );
  }

  #struct(node: Node & { kind: 'struct' }): Step {
    const reference = this.#references.get(node);
    const type = reference?.kind === 'type' ? reference.struct : undefined;
    if (type === undefined) throw new CelFailure(`unknown type '${node.typeName}'`);
    const fields = node.fields.map(({ name, value }) => {
      const path = type.find(name) ?? [];
      return [path.at(-1)?.name ?? name, this.compile(value)] as const;
    });
    return this.#paid(COST.struct, (scope) => {
      return new StructValue(type, new Map(fields.map(([name, value]) => [name, value(scope)])), true);
    });
  }

  #call({ name, target, args: argNodes }: Node & { kind: 'call' }): Step {
    const args = argNodes.map((arg) => this.compile(arg));
    const [first = noValue, second = noValue, third = noValue] = args;
    switch (name) {
      case '_?_:_':
        return (scope) => {
          const condition = first(scope);
          if (typeof condition !== 'boolean') throw new CelFailure('no such overload');
          return condition ? second(scope) : third(scope);
        };
      case '_&&_':
        return logic(args, false);
      case '_||_':
        return logic(args, true);
      case '@not_strictly_false':
        return (scope) => {
          const value = attempt(first, scope);
          this.#meter.spend(1);
          return value !== false;
        };
      case '_[_]':
        return this.#paid(COST.selectOrIdent, (scope) => index(first(scope), second(scope)));
      default: {
        const on = target === undefined ? undefined : this.compile(target);
        return (scope) =>
          this.#plainCall(
            name,
            on?.(scope),
            args.map((arg) => arg(scope)),
          );
      }
    }
  }

  #plainCall(name: string, target: CelValue | undefined, args: readonly CelValue[]): CelValue {
    const { functions } = this.#deps;
    const given = target === undefined ? args : [target, ...args];
    this.#meter.spend(callCost(name, given));
    const [first = null, second = null] = given;
    switch (name) {
      case '_==_':
        return isEqual(functions, first, second);
      case '_!=_':
        return !isEqual(functions, first, second);
      case '@in':
        return isIn(functions, first, second);
      case 'type':
        return new TypeValue(typeName(first));
      case 'dyn':
        return first;
      case 'size':
        return BigInt(sizeOf(first));
      case 'matches':
        return functions.call(name, first, [second]);
      case '_+_':
        return concatenate(first, second) ?? functions.call(name, target, args);
      default:
        return functions.call(name, target, args);
    }
  }

  #comprehension(node: Comprehension): Step {
    const range = this.compile(node.range);
    const initial = this.compile(node.initial);
    const condition = this.compile(node.condition);
    const step = this.#appending(node) ?? this.compile(node.step);
    const result = this.compile(node.result);
    return (outer) => {
      const over = range(outer);
      const items = over instanceof MapValue ? over.keys() : over;
      if (!isList(items)) throw new CelFailure('no such overload');
      const accumulator: Scope = { name: node.accumulator, value: initial(outer), outer };
      for (const value of items) {
        const inner: Scope = { name: node.variable, value, outer: accumulator };
        if (condition(inner) !== true) break;
        accumulator.value = attempt(step, inner);
      }
      return result(accumulator);
    };
  }

  /**
   * The step of `map` and `filter`, which add one element to a list, without copying the list each time: nobody else
   * holds it. It costs what the addition would.
   */
  #appending({ initial, step, accumulator }: Comprehension): Step | undefined {
    if (initial.kind !== 'list') return undefined;
    const isResult = (node: Node | undefined): boolean => node?.kind === 'ident' && node.name === accumulator;
    const choice: readonly (Node | undefined)[] =
      step.kind === 'call' && step.name === '_?_:_' ? step.args : [undefined, step];
    const [condition, added, otherwise] = choice;
    if (added?.kind !== 'call' || added.name !== '_+_' || (condition !== undefined && !isResult(otherwise))) {
      return undefined;
    }
    const [list, more] = added.args;
    if (!isResult(list) || list === undefined || more?.kind !== 'list') return undefined;
    const test = condition && this.compile(condition);
    const current = this.compile(list);
    const elements = this.compile(more);
    return (scope) => {
      const isWanted = test?.(scope) ?? true;
      if (typeof isWanted !== 'boolean') throw new CelFailure('no such overload');
      if (!isWanted) return current(scope);
      const all = current(scope) as CelValue[];
      all.push(...(elements(scope) as readonly CelValue[]));
      this.#meter.spend(1);
      return all;
    };
  }
}

const noValue: Step = () => {
  throw new CelFailure('no such overload');
};

function attempt(step: Step, scope: Scope | undefined): CelValue | CelFailure {
  try {
    return step(scope);
  } catch (caught) {
    if (caught instanceof CelFailure) return caught;
    throw caught;
  }
}

/** `&&` and `||`: one argument that decides makes the others' failures not matter. */
function logic(args: readonly Step[], decisive: boolean): Step {
  return (scope) => {
    let failure: CelFailure | undefined;
    for (const arg of args) {
      const value = attempt(arg, scope);
      if (value === decisive) return decisive;
      if (value instanceof CelFailure) failure ??= value;
      else if (typeof value !== 'boolean') failure ??= new CelFailure('no such overload');
    }
    if (failure !== undefined) throw failure;
    return !decisive;
  };
}

/** Texts are counted in code points. */
function sizeOf(value: CelValue): number {
  if (typeof value === 'string') {
    return codePoints(value);
  }
  if (value instanceof Uint8Array || isList(value)) return value.length;
  if (value instanceof MapValue) return value.size;
  throw new CelFailure('no such overload');
}
