import { renderJson } from '@virtwire/vm-model';
import { diffOperations, isSame, type Operation } from './json-diff.ts';

/** One thing that a pass did, in order. The same form as in the reference, but with whole objects for differences. */
export type TraceEntry =
  | {
      readonly kind: 'rpc';
      readonly rpc: string;
      readonly vmi?: unknown;
      readonly options?: unknown;
      readonly dumpPath?: string;
    }
  | { readonly kind: 'node'; readonly op: string; readonly [argument: string]: unknown }
  | { readonly kind: 'nodeHook'; readonly point: string }
  | {
      readonly kind: 'event';
      readonly type: string;
      readonly reason: string;
      readonly message: string;
      readonly object: { readonly namespace?: string; readonly name: string; readonly uid?: string };
    }
  | { readonly kind: 'requeue'; readonly after: number | 'rateLimited' }
  | { readonly kind: 'update'; readonly resourceVersion: string };

/** What one pass came to. */
export interface PassOutcome {
  readonly error: string | null;
  readonly trace: readonly TraceEntry[];
  /** The VMI in the store before the pass. */
  readonly stored: unknown;
  /** The VMI as sent, when an update was sent. */
  readonly update: unknown;
  readonly after: {
    readonly domainInStore: boolean;
    readonly expectationOpen: boolean;
    readonly ghostRecords: unknown;
    readonly launcherClients: unknown;
  };
}

/** A pass of the reference. */
export interface ExpectedPass {
  readonly error: string | null;
  readonly trace: readonly ExpectedEntry[];
  readonly updateDiff?: readonly Operation[];
  readonly after: Readonly<Record<string, unknown>>;
}

type ExpectedEntry = { readonly kind: string } & Readonly<Record<string, unknown>>;

/**
 * Tails of error texts that come from path resolution, dialling or a JSON decoder; what stands before them is binding.
 */
const FREE_TAIL =
  /(lstat |failed opening .* for path|connection refused|dial unix|context deadline exceeded|rpc error: code = Unavailable).*$/s;
/** Numbers and places of the machine. */
const PLACEHOLDER = /<n>|\d{6,}/g;

/** Where a pass differs from the reference. */
export function comparePass(expected: ExpectedPass, actual: PassOutcome): readonly string[] {
  return [
    ...compareError(expected.error, actual.error),
    ...compareTrace(expected.trace, actual),
    ...compareRequeue(expected.trace, actual.trace),
    ...compareUpdate(expected.updateDiff, actual),
    ...compareAfter(expected.after, actual.after),
  ];
}

function compareError(expected: string | null, actual: string | null): readonly string[] {
  if (expected === actual || (expected !== null && actual !== null && isSameText(expected, actual))) return [];
  if (expected?.startsWith('panic:') === true && actual !== null) return [];
  return [`error: expected ${show(expected)}, got ${show(actual)}`];
}

function isSameText(expected: string, actual: string): boolean {
  const binding = (text: string): string => text.replace(FREE_TAIL, '').replace(PLACEHOLDER, '<n>');
  return binding(expected) === binding(actual);
}

/** Requests, events, hooks and updates in order; between two of them, node calls in any order. */
function compareTrace(expected: readonly ExpectedEntry[], { trace, stored }: PassOutcome): readonly string[] {
  const want = segments(expected.filter(({ kind }) => kind !== 'requeue').map((entry) => describe(entry)));
  const got = segments(
    trace.filter(({ kind }) => kind !== 'requeue').map((entry) => describe(withDiff(entry, stored))),
  );
  const at = want.findIndex((text, i) => !isSameText(text, got[i] ?? 'nothing'));
  if (at >= 0) return [`trace: expected ${show(want[at])}, got ${show(got[at])}${after(want, at)}`];
  return got.length > want.length ? [`trace: not expected: ${show(got[want.length])}${after(want, want.length)}`] : [];
}

function after(entries: readonly string[], at: number): string {
  return at === 0 ? ' at the start' : ` after ${entries[at - 1] ?? ''}`;
}

/** Sorts neighbouring node calls, whose order is free. */
function segments(entries: readonly string[]): readonly string[] {
  const out: string[] = [];
  let run: string[] = [];
  for (const entry of [...entries, '']) {
    if (entry.startsWith('node ')) {
      run.push(entry);
      continue;
    }
    out.push(...run.sort());
    run = [];
    if (entry !== '') out.push(entry);
  }
  return out;
}

/** The difference between the VMI of a request and the stored one, as the reference has it. */
function withDiff(entry: TraceEntry, stored: unknown): ExpectedEntry {
  if (entry.kind !== 'rpc' || entry.vmi === undefined || stored === undefined) return { ...entry };
  const { vmi, ...rest } = entry;
  return { ...rest, vmiDiff: diffOperations(stored, vmi) };
}

function describe(entry: ExpectedEntry): string {
  switch (entry.kind) {
    case 'rpc':
      return `rpc ${String(entry['rpc'])}${describeRequest(entry)}`;
    case 'node': {
      const args = Object.entries(entry).filter(([key]) => key !== 'kind' && key !== 'op');
      return `node ${String(entry['op'])} ${renderSorted(Object.fromEntries(args))}`;
    }
    case 'event':
      return `event ${renderSorted(entry['object'])} ${String(entry['type'])} ${String(entry['reason'])} ${String(entry['message'])}`;
    case 'nodeHook':
      return `hook ${String(entry['point'])}`;
    case 'update':
      return `update of ${String(entry['resourceVersion'])}`;
    default:
      return `${entry.kind} ${renderSorted(entry)}`;
  }
}

function describeRequest(entry: ExpectedEntry): string {
  const parts = ['vmiDiff', 'vmi', 'options', 'dumpPath'].filter((key) => entry[key] !== undefined);
  return parts.map((key) => ` ${key} ${renderSorted(compact(entry[key]))}`).join('');
}

/** Without unset values and empty objects, which Go's printing adds and drops. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(
    ([, item]) => !isSame(item, undefined) && item !== '' && item !== 0 && item !== false,
  );
  return Object.fromEntries(kept.map(([key, item]) => [key, compact(item)]));
}

/** Of several times at which the key is put back, the earliest counts. */
function compareRequeue(expected: readonly ExpectedEntry[], actual: readonly TraceEntry[]): readonly string[] {
  const [want, got] = [earliest(expected), earliest(actual)];
  return want === got ? [] : [`requeue: expected ${want}, got ${got}`];
}

function earliest(
  trace: readonly { readonly kind: string; readonly after?: unknown; readonly rateLimited?: unknown }[],
): string {
  const requeues = trace.filter(({ kind }) => kind === 'requeue');
  const isLimited = requeues.some((entry) => entry.rateLimited === true || entry.after === 'rateLimited');
  const times = requeues.map((entry) => entry.after).filter((after) => typeof after === 'number');
  return `${isLimited ? 'rate limited, ' : ''}${times.length === 0 ? 'never' : `after ${String(Math.min(...times))} s`}`;
}

function compareUpdate(expected: readonly Operation[] | undefined, { update, stored }: PassOutcome): readonly string[] {
  if (expected === undefined)
    return update === undefined ? [] : [`update: expected none, got ${show(diffOperations(stored, update))}`];
  if (update === undefined) return [`update: expected ${show(expected)}, got none`];
  const want = new Map(expected.map((operation) => [operation.path, operation]));
  const got = new Map(diffOperations(stored, update).map((operation) => [operation.path, operation]));
  return [...new Set([...want.keys(), ...got.keys()])].flatMap((path) => {
    const [wanted, found] = [want.get(path)?.value, got.get(path)?.value];
    const isMissing = !want.has(path) || !got.has(path);
    if (isMissing ? isSame(wanted, undefined) && isSame(found, undefined) : isSame(wanted, found)) return [];
    return [
      `update ${path}: expected ${show(want.get(path) ?? 'no change')}, got ${show(got.get(path) ?? 'no change')}`,
    ];
  });
}

function compareAfter(expected: Readonly<Record<string, unknown>>, actual: PassOutcome['after']): readonly string[] {
  return Object.entries(actual).flatMap(([key, value]) =>
    isSame(expected[key], value) ? [] : [`after ${key}: expected ${show(expected[key])}, got ${show(value)}`],
  );
}

function renderSorted(value: unknown): string {
  return renderJson(sorted(value) ?? null);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? 'nothing' : renderJson(value);
}
