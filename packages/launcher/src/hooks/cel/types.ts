/** A type of CEL, as the checker knows it. */
export type CelType =
  | { readonly kind: ScalarKind }
  | { readonly kind: 'list' | 'type'; readonly of: CelType }
  | { readonly kind: 'map'; readonly key: CelType; readonly of: CelType }
  | { readonly kind: 'struct'; readonly name: string }
  | { readonly kind: 'param'; readonly id: number };

type ScalarKind =
  'bool' | 'bytes' | 'double' | 'duration' | 'dyn' | 'error' | 'int' | 'null_type' | 'string' | 'timestamp' | 'uint';

/** A type without parts. */
export const scalarType = (kind: ScalarKind): CelType => ({ kind });

const DYN = scalarType('dyn');

/** @source cel-go checker/format.go */
export function formatType(type: CelType): string {
  switch (type.kind) {
    case 'list':
    case 'type':
      return `${type.kind}(${formatType(type.of)})`;
    case 'map':
      return `map(${formatType(type.key)}, ${formatType(type.of)})`;
    case 'struct':
      return type.name;
    case 'param':
      return `_var${type.id}`;
    case 'error':
      return '!error!';
    case 'null_type':
      return 'null';
    default:
      return type.kind;
  }
}

function partsOf(type: CelType): readonly CelType[] {
  if (type.kind === 'map') return [type.key, type.of];
  return type.kind === 'list' || type.kind === 'type' ? [type.of] : [];
}

function isAnything({ kind }: CelType): boolean {
  return kind === 'dyn' || kind === 'error';
}

function isNullable({ kind }: CelType): boolean {
  return kind === 'null_type' || kind === 'struct' || kind === 'duration' || kind === 'timestamp';
}

/** Whether two types are the same. */
export function isSameType(a: CelType, b: CelType): boolean {
  if (a.kind === 'struct' && b.kind === 'struct') return a.name === b.name;
  if (a.kind === 'param' && b.kind === 'param') return a.id === b.id;
  const others = partsOf(b);
  return a.kind === b.kind && partsOf(a).every((part, index) => isSameType(part, others[index] ?? DYN));
}

/** Finds out what the parameters of types stand for. `@source cel-go checker/types.go, checker/mapping.go` */
export class Unifier {
  #bound: ReadonlyMap<number, CelType> = new Map();
  #next = 0;

  /** A type that is not known yet. */
  newParameter(): CelType {
    return { kind: 'param', id: this.#next++ };
  }

  /** A type with what is known of its parameters; the others become `dyn` when asked for. */
  resolve(type: CelType, isFinal = false): CelType {
    switch (type.kind) {
      case 'param': {
        const bound = this.#bound.get(type.id);
        if (bound !== undefined) return this.resolve(bound, isFinal);
        return isFinal ? DYN : type;
      }
      case 'list':
      case 'type':
        return { kind: type.kind, of: this.resolve(type.of, isFinal) };
      case 'map':
        return { kind: 'map', key: this.resolve(type.key, isFinal), of: this.resolve(type.of, isFinal) };
      default:
        return type;
    }
  }

  /** Whether values of the types fit each other pair by pair; learns of parameters only if they all do. */
  fits(wanted: readonly CelType[], given: readonly CelType[]): boolean {
    const before = this.#bound;
    const fit = wanted.length === given.length && wanted.every((type, i) => this.#fitsOne(type, given[i] ?? DYN));
    if (!fit) this.#bound = before;
    return fit;
  }

  #fitsOne(a: CelType, b: CelType): boolean {
    if (b.kind === 'param') {
      const bound = this.#bound.get(b.id);
      if (this.#bind(b, a)) return true;
      if (bound !== undefined) return false;
    }
    if (a.kind === 'param') return this.#bind(a, b);
    if (isAnything(a) || isAnything(b)) return true;
    if (a.kind === 'null_type') return isNullable(b);
    if (b.kind === 'null_type') return isNullable(a);
    if (a.kind === 'type' || a.kind !== b.kind) return a.kind === b.kind;
    if (a.kind === 'struct') return isSameType(a, b);
    const others = partsOf(b);
    return partsOf(a).every((part, index) => this.#fitsOne(part, others[index] ?? DYN));
  }

  #bind(param: { readonly id: number }, type: CelType): boolean {
    if (type.kind === 'param' && type.id === param.id) return true;
    const bound = this.#bound.get(param.id);
    if (bound !== undefined) {
      if (!this.#fitsOne(bound, type)) return false;
      this.#learn(param.id, this.#isMoreGeneral(bound, type) ? bound : type);
      return true;
    }
    if (this.#mentions(type, param.id)) return false;
    this.#learn(param.id, type);
    return true;
  }

  #learn(id: number, type: CelType): void {
    if (type.kind !== 'param' || type.id !== id) this.#bound = new Map(this.#bound).set(id, type);
  }

  #mentions(type: CelType, id: number): boolean {
    if (type.kind !== 'param') return partsOf(type).some((part) => this.#mentions(part, id));
    const bound = this.#bound.get(type.id);
    return type.id === id || (bound !== undefined && this.#mentions(bound, id));
  }

  #isMoreGeneral(a: CelType, b: CelType): boolean {
    if (isAnything(a) || a.kind === 'param') return true;
    if (isAnything(b) || b.kind === 'param' || a.kind !== b.kind) return false;
    if (a.kind === 'type') return true;
    const others = partsOf(b);
    const parts = partsOf(a);
    return parts.length === 0
      ? isSameType(a, b)
      : parts.every((part, index) => this.#isMoreGeneral(part, others[index] ?? DYN));
  }

  /** The type of a literal's elements, of which another one turns up; mixed ones are `dyn`. */
  join(before: CelType | undefined, next: CelType): CelType {
    if (before === undefined) return next;
    if (!this.fits([before], [next])) return DYN;
    return this.#isMoreGeneral(before, next) ? before : next;
  }
}
