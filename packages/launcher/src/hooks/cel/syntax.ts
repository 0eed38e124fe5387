import { celUint, parse } from '@bufbuild/cel';
import { textOf } from '../../errors.ts';
import type { CelError } from './report.ts';
import { reportAt } from './report.ts';
import type { CelValue } from './values.ts';

/** One node of an expression, macros written out; `at` is its place in the text, in UTF-16 units. */
export type Node = { readonly at: number } & (
  | { readonly kind: 'const'; readonly value: CelValue }
  | { readonly kind: 'ident'; readonly name: string }
  | { readonly kind: 'select'; readonly operand: Node; readonly field: string; readonly isTest: boolean }
  | { readonly kind: 'call'; readonly name: string; readonly target: Node | undefined; readonly args: readonly Node[] }
  | { readonly kind: 'list'; readonly elements: readonly Node[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [key: Node, value: Node])[] }
  | { readonly kind: 'struct'; readonly typeName: string; readonly fields: readonly StructField[] }
  | Comprehension
);

/** One field of a struct that is made; `at` is its colon. */
export interface StructField {
  readonly name: string;
  readonly value: Node;
  readonly at: number;
}

/** What a macro over a list or map does. */
export interface Comprehension {
  readonly kind: 'comprehension';
  readonly range: Node;
  readonly variable: string;
  readonly accumulator: string;
  readonly initial: Node;
  readonly condition: Node;
  readonly step: Node;
  readonly result: Node;
}

type LibraryExpr = NonNullable<ReturnType<typeof parse>['expr']>;
type Kind<C> = Extract<LibraryExpr['exprKind'], { case: C }>['value'];

const MAX_CODE_POINTS = 100_000;
const MAX_DEPTH = 250;
const MAX_INT = 2n ** 63n;
const MAX_UINT = 2n ** 64n;

/**
 * Reads an expression.
 *
 * @throws {CelError} which says where it is wrong.
 */
export function parseExpression(text: string): Node {
  if (text.length > MAX_CODE_POINTS) {
    const size = `size: ${text.length}, limit ${MAX_CODE_POINTS}`;
    throw reportAt(text, -1, `expression code point size exceeds limit: ${size}`);
  }
  const { expr, positions } = parseText(text);
  return new Converter(text, positions).convert(expr, 0);
}

function parseText(text: string): { expr: LibraryExpr; positions: Readonly<Record<string, number>> } {
  try {
    const { expr, sourceInfo } = parse(text);
    return { expr, positions: sourceInfo?.positions ?? {} };
  } catch (caught) {
    if (caught instanceof RangeError) throw tooDeep(text);
    const { location, rawMessage } = caught as { location?: { start?: { offset?: number } }; rawMessage?: string };
    const why = rawMessage ?? textOf(caught).replace(/^<input>:\d+:\d+: /, '');
    throw reportAt(text, location?.start?.offset ?? 0, `Syntax error: ${why}`);
  }
}

function tooDeep(text: string): CelError {
  return reportAt(text, -1, `expression recursion limit exceeded: ${MAX_DEPTH}`);
}

class Converter {
  readonly #text: string;
  readonly #positions: Readonly<Record<string, number>>;

  constructor(text: string, positions: Readonly<Record<string, number>>) {
    this.#text = text;
    this.#positions = positions;
  }

  convert(expr: LibraryExpr | undefined, depth: number): Node {
    // What a binary operator leans on is not nested deeper for a reader, but is here; so there is some room.
    if (depth > 4 * MAX_DEPTH) throw tooDeep(this.#text);
    if (expr === undefined) throw this.#unknown(0);
    const at = this.#at(expr.id);
    const { exprKind } = expr;
    const inner = (part: LibraryExpr | undefined): Node => this.convert(part, depth + 1);
    switch (exprKind.case) {
      case 'constExpr':
        return { at, kind: 'const', value: this.#constant(exprKind.value, at) };
      case 'identExpr':
        return { at, kind: 'ident', name: exprKind.value.name };
      case 'selectExpr': {
        const { operand, field, testOnly } = exprKind.value;
        const place = testOnly ? this.#callAt('has', at) : at;
        return { at: place, kind: 'select', operand: inner(operand), field, isTest: testOnly };
      }
      case 'callExpr': {
        const { function: name, target, args } = exprKind.value;
        return {
          at: this.#callAt(name, at),
          kind: 'call',
          name,
          target: target && inner(target),
          args: args.map(inner),
        };
      }
      case 'listExpr':
        return { at, kind: 'list', elements: exprKind.value.elements.map(inner) };
      case 'structExpr':
        return { at: this.#structAt(exprKind.value.messageName, at), ...this.#struct(exprKind.value, at, inner) };
      case 'comprehensionExpr':
        return { at, ...comprehension(exprKind.value, inner) };
      default:
        throw this.#unknown(at);
    }
  }

  #at(id: bigint): number {
    return this.#positions[String(id)] ?? 0;
  }

  /** Calls are at their parenthesis for cel-go, operators at themselves, behind the blanks. */
  #callAt(name: string, at: number): number {
    if (/^[a-z]/i.test(name)) return Math.max(at, this.#text.indexOf('(', at));
    return at + (/^\s*/.exec(this.#text.slice(at))?.[0].length ?? 0);
  }

  /** Structs are at their brace, maps too. */
  #structAt(typeName: string, at: number): number {
    return typeName === '' ? at : Math.max(at, this.#text.indexOf('{', at + typeName.length));
  }

  #unknown(at: number): CelError {
    return reportAt(this.#text, at, 'unsupported expression');
  }

  #struct({ messageName, entries }: Kind<'structExpr'>, at: number, inner: (part?: LibraryExpr) => Node) {
    if (messageName === '') {
      const pairs = entries.map(({ keyKind, value }) => {
        if (keyKind.case !== 'mapKey') throw this.#unknown(at);
        return [inner(keyKind.value), inner(value)] as const;
      });
      return { kind: 'map' as const, entries: pairs };
    }
    const fields = entries.map(({ id, keyKind, value }) => {
      if (keyKind.case !== 'fieldKey') throw this.#unknown(at);
      const colon = this.#text.indexOf(':', this.#at(id) + keyKind.value.length);
      return { name: keyKind.value, value: inner(value), at: colon };
    });
    return { kind: 'struct' as const, typeName: messageName, fields };
  }

  #constant({ constantKind }: Kind<'constExpr'>, at: number): CelValue {
    switch (constantKind.case) {
      case 'int64Value':
        if (constantKind.value >= MAX_INT || constantKind.value < -MAX_INT) {
          throw reportAt(this.#text, at, 'invalid int literal');
        }
        return constantKind.value;
      case 'uint64Value':
        if (constantKind.value >= MAX_UINT) throw reportAt(this.#text, at, 'invalid uint literal');
        return celUint(constantKind.value);
      case 'nullValue':
        return null;
      case 'boolValue':
      case 'doubleValue':
      case 'stringValue':
      case 'bytesValue':
        return constantKind.value;
      default:
        throw this.#unknown(at);
    }
  }
}

function comprehension(value: Kind<'comprehensionExpr'>, inner: (part?: LibraryExpr) => Node): Comprehension {
  return {
    kind: 'comprehension',
    range: inner(value.iterRange),
    variable: value.iterVar,
    accumulator: value.accuVar,
    initial: inner(value.accuInit),
    condition: inner(value.loopCondition),
    step: inner(value.loopStep),
    result: inner(value.result),
  };
}
