import type { CelFunc, parse } from '@bufbuild/cel';
import { celEnv, isCelError, plan } from '@bufbuild/cel';
import { adjustedCall, isTime } from './adjustments.ts';
import type { CelType } from './types.ts';
import { scalarType } from './types.ts';
import type { CelValue } from './values.ts';
import { CelFailure } from './values.ts';

/** One way to call a function; a method has its target before the arguments. */
export interface Overload {
  readonly isMethod: boolean;
  readonly params: readonly CelType[];
  readonly result: CelType;
}

type LibraryType = CelFunc['result'];
type Expr = Exclude<NonNullable<ReturnType<typeof parse>['expr']>, undefined>;
type LibraryValue = Parameters<CelFunc['call']>[2][number];

/** What stands for any type in an overload. */
const A: CelType = { kind: 'param', id: -1 };
const B: CelType = { kind: 'param', id: -2 };
const BOOL = scalarType('bool');
const INT = scalarType('int');
const STRING = scalarType('string');
const DYN = scalarType('dyn');
const LIST: CelType = { kind: 'list', of: A };
const MAP: CelType = { kind: 'map', key: A, of: B };

const call = (result: CelType, ...params: CelType[]): Overload => ({ isMethod: false, params, result });
const method = (result: CelType, ...params: CelType[]): Overload => ({ isMethod: true, params, result });

/** Functions that work on values that the library does not know, or on any; see `operators.ts`. */
const GENERIC: Readonly<Record<string, readonly Overload[]>> = {
  '_?_:_': [call(A, BOOL, A, A)],
  '_&&_': [call(BOOL, BOOL, BOOL)],
  '_||_': [call(BOOL, BOOL, BOOL)],
  '@not_strictly_false': [call(BOOL, BOOL)],
  '_==_': [call(BOOL, A, A)],
  '_!=_': [call(BOOL, A, A)],
  '_+_': [call(LIST, LIST, LIST)],
  '_[_]': [call(A, LIST, INT), call(B, MAP, A)],
  '@in': [call(BOOL, A, LIST), call(BOOL, A, MAP)],
  size: [call(INT, LIST), call(INT, MAP), method(INT, LIST), method(INT, MAP)],
  type: [call({ kind: 'type', of: A }, A)],
  dyn: [call(DYN, A)],
  matches: [call(BOOL, STRING, STRING)],
  int: [call(INT, scalarType('duration'))],
};

const NUMBERS = new Set(['int', 'uint', 'double']);
const COMPARISONS = new Set(['_<_', '_<=_', '_>_', '_>=_']);

/** The type of the library's that is one of ours, if it is a scalar. */
function ownType(type: LibraryType): CelType | undefined {
  if (type.name === 'google.protobuf.Timestamp') return scalarType('timestamp');
  if (type.name === 'google.protobuf.Duration') return scalarType('duration');
  if (type.kind !== 'scalar' || type.scalar === 'dyn' || type.scalar === 'type') return undefined;
  return scalarType(type.scalar);
}

function ownOverload(func: CelFunc): Overload | undefined {
  const given = func.target === undefined ? func.arguments : [func.target, ...func.arguments];
  const params = given.map(ownType).filter((type) => type !== undefined);
  const result = ownType(func.result);
  if (result === undefined || params.length !== given.length) return undefined;
  // Numbers of two kinds compare when an expression does not say their kinds beforehand, but not when it does.
  const [left, right] = params;
  const isMixed = left?.kind !== right?.kind && NUMBERS.has(left?.kind ?? '') && NUMBERS.has(right?.kind ?? '');
  return COMPARISONS.has(func.name) && isMixed ? undefined : { isMethod: func.target !== undefined, params, result };
}

/** Functions that make times. */
const TIMES = new Set(['timestamp', 'duration']);

/** Functions that read a text, with the type that they make of it. */
const CONVERSIONS: Readonly<Record<string, string>> = {
  bool: 'bool',
  double: 'double',
  duration: 'google.protobuf.Duration',
  int: 'int',
  timestamp: 'google.protobuf.Timestamp',
  uint: 'uint',
};

/** The library's reason in cel-go's words. */
function failureText(name: string, args: readonly CelValue[], text: string): string {
  const made = CONVERSIONS[name];
  if (made !== undefined && typeof args[0] === 'string') return `type conversion error from 'string' to '${made}'`;
  if (text.includes('divide by zero')) return 'division by zero';
  if (text.includes('modulus by zero')) return 'modulus by zero';
  if (text.startsWith('uint overflow')) return 'unsigned integer overflow';
  return text.startsWith('int overflow') ? 'integer overflow' : text;
}

/** A call of variables named `v0` and so on. */
function callExpr(name: string, count: number, isMethod: boolean): Expr {
  const variable = (index: number): Expr => ({
    $typeName: 'cel.expr.Expr',
    id: BigInt(index + 2),
    exprKind: { case: 'identExpr', value: { $typeName: 'cel.expr.Expr.Ident', name: `v${index}` } },
  });
  const all = Array.from({ length: count + (isMethod ? 1 : 0) }, (_, index) => variable(index));
  const [target] = all;
  return {
    $typeName: 'cel.expr.Expr',
    id: 1n,
    exprKind: {
      case: 'callExpr',
      value: {
        $typeName: 'cel.expr.Expr.Call',
        function: name,
        args: isMethod ? all.slice(1) : all,
        ...(isMethod && target !== undefined ? { target } : {}),
      },
    },
  };
}

/** The functions of CEL's standard. */
export interface Functions {
  /** Every way to call a function; undefined when there is no such function. */
  overloads(name: string): readonly Overload[] | undefined;
  /**
   * Calls a function of scalars.
   *
   * @throws {CelFailure} when it has no result, or does not take these values.
   */
  call(name: string, target: CelValue | undefined, args: readonly CelValue[]): CelValue;
}

/** Creates the functions: those of scalars are the library's. */
export function createFunctions(): Functions {
  const env = celEnv();
  const { funcs } = env;
  const plans = new Map<string, ReturnType<typeof plan>>();
  const all = new Map<string, Overload[]>(Object.entries(GENERIC).map(([name, overloads]) => [name, [...overloads]]));
  for (const func of funcs) {
    const overload = ownOverload(func);
    if (overload === undefined) continue;
    const known = all.get(func.name);
    if (known === undefined) all.set(func.name, [overload]);
    else known.push(overload);
  }

  function called(name: string, target: CelValue | undefined, args: readonly CelValue[]) {
    return funcs.find(name)?.call(0, target as LibraryValue | undefined, args as LibraryValue[]);
  }

  /** Times need what the library sets up for a whole expression only. */
  function planned(name: string, target: CelValue | undefined, args: readonly CelValue[]) {
    const given = target === undefined ? args : [target, ...args];
    const key = `${name}/${args.length}/${given.length}`;
    const known = plans.get(key) ?? plan(env, callExpr(name, args.length, target !== undefined));
    plans.set(key, known);
    return known(Object.fromEntries(given.map((value, index) => [`v${index}`, value as LibraryValue])));
  }

  return {
    overloads: (name) => all.get(name),
    call(name, target, args) {
      const adjusted = adjustedCall(name, target === undefined ? args : [target, ...args], (n, a) =>
        plainCall(n, undefined, a),
      );
      return adjusted ?? plainCall(name, target, args);
    },
  };

  function plainCall(name: string, target: CelValue | undefined, args: readonly CelValue[]): CelValue {
    const isPlanned = TIMES.has(name) || isTime(target) || args.some(isTime);
    const result = (isPlanned ? planned : called)(name, target, args);
    if (result === undefined) throw new CelFailure('no such overload');
    if (isCelError(result)) throw new CelFailure(failureText(name, args, result.message));
    return result as unknown as CelValue;
  }
}
