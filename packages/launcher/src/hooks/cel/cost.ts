import type { CelValue } from './values.ts';
import { isList, MapValue } from './values.ts';

/** An expression that costs more than it may; nothing in the expression can do without what is missing then. */
export class CostExceeded extends Error {
  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/** Adds up what an expression costs. */
export class CostMeter {
  #left: number;

  constructor(limit: number) {
    this.#left = limit;
  }

  /** @throws {CostExceeded} */
  spend(cost: number): void {
    this.#left -= cost;
    if (this.#left < 0) throw new CostExceeded();
  }
}

/** Costs of what is no call. `@source cel-go common/cost.go` */
export const COST = { selectOrIdent: 1, list: 10, map: 30, struct: 40 } as const;

/** What looking at one character costs. */
const PER_CHARACTER = 0.1;
/** What one character of a regular expression costs for each look at the text. */
const PER_PATTERN_CHARACTER = 0.25;

function sizeOf(value: CelValue | undefined): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  if (value === undefined) return 1;
  if (isList(value)) return value.length;
  return value instanceof MapValue ? value.size : 1;
}

const scan = (size: number): number => Math.ceil(size * PER_CHARACTER);

/**
 * What a call costs. Other than in cel-go, adding lists costs something for each element, since it copies them here.
 *
 * @source cel-go interpreter/runtimecost.go
 */
export function callCost(name: string, args: readonly CelValue[]): number {
  const [first, second] = args;
  const isText = typeof first === 'string' || first instanceof Uint8Array;
  switch (name) {
    case 'startsWith':
    case 'endsWith':
      return scan(sizeOf(first));
    case 'bytes':
    case 'string':
      return isText ? scan(sizeOf(first)) : 1;
    case '@in':
      return second !== undefined && isList(second) ? second.length : 1;
    case '_==_':
    case '_!=_':
      return scan(Math.min(sizeOf(first), sizeOf(second)));
    case '_<_':
    case '_<=_':
    case '_>_':
    case '_>=_':
      return isText ? scan(Math.min(sizeOf(first), sizeOf(second))) : 1;
    case '_+_':
      return isText || (first !== undefined && isList(first)) ? scan(sizeOf(first) + sizeOf(second)) : 1;
    case 'matches':
      return scan(1 + sizeOf(first)) * Math.ceil(sizeOf(second) * PER_PATTERN_CHARACTER);
    case 'contains':
      return scan(sizeOf(first)) * scan(sizeOf(second));
    default:
      return 1;
  }
}
