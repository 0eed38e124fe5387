import { canonicalQuantity, parseJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { diffJson } from '../../compare.ts';
import type { CaseAfter, CasePass, TraceEntry } from './case.ts';
import type { PassOutcome } from './scene.ts';

type Json = Record<string, unknown>;

/** Values that say the same in several ways: amounts, and JSON in a field of bytes. */
const READERS: Readonly<Record<string, (value: unknown) => unknown>> = {
  storage: (value) => (typeof value === 'string' ? canonicalQuantity(value) : value),
  pluginsJson: (value) =>
    typeof value === 'string' && value !== '' ? parseJson(Buffer.from(value, 'base64').toString()) : value,
};

/** Drops what Go leaves out or fills in: empty objects and lists, empty strings, null, zero and false. */
function essence(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => essence(item) ?? null);
  if (typeof value !== 'object' || value === null) {
    return value === null || value === '' || value === '0' || value === 0 || value === false ? undefined : value;
  }
  const entries = Object.entries(value)
    .map(([key, inner]): [string, unknown] => [key, essence(READERS[key]?.(inner) ?? inner)])
    .filter(([, inner]) => inner !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

interface Operation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}

/** The stored VMI with the recorded difference, as the request should hold it. */
function applyDiff(stored: Vmi | undefined, operations: readonly Operation[]): unknown {
  const result = structuredClone(stored ?? {}) as Json;
  for (const { op, path, value } of operations) {
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() ?? '';
    let at = result;
    for (const key of keys) at = (at[key] ??= {}) as Json;
    if (op === 'remove') Reflect.deleteProperty(at, last);
    else at[last] = value;
  }
  return result;
}

const CLEANUP_OPS: ReadonlySet<unknown> = new Set(['containerDisksUnmount', 'hotplugUnmountAll', 'networkTeardown']);

/** One entry as text: what must be the same, in the same order. Requests are compared apart. */
function summary(entry: TraceEntry): string {
  const { kind, rpc, op, path, point, uid, networks, launcherPid, volume, attachPodUID } = entry;
  const { bytes, notInitializedSince, type, reason, message, resourceVersion, dumpPath } = entry;
  const object = (entry['object'] as { uid?: string } | undefined)?.uid;
  const parts = { rpc, op, path, point, uid, networks, launcherPid, volume, attachPodUID, notInitializedSince, bytes };
  return JSON.stringify({ kind, ...parts, type, reason, message, object, resourceVersion, dumpPath });
}

const isOf =
  (...kinds: readonly string[]) =>
  (entry: TraceEntry): boolean =>
    kinds.includes(entry.kind);

/**
 * Order is compared among calls of launcher, node and hooks, the update included, and among events. What follows a
 * failed clean-up step may be more than in the model: virtwire tries all of them.
 */
function diffTrace(expected: readonly TraceEntry[], actual: readonly TraceEntry[]): readonly string[] {
  const out: string[] = [];
  for (const kinds of [['rpc', 'node', 'nodeHook', 'update', 'patch'], ['event']]) {
    const want = expected.filter(isOf(...kinds)).map(summary);
    const got = actual.filter(isOf(...kinds));
    const texts = got.map(summary);
    const at = want.findIndex((text, i) => text !== texts[i]);
    const extra = got.slice(want.length);
    if (at >= 0) {
      if (isFurtherCleanup(want, got, at)) continue;
      out.push(`${kinds[0] ?? ''} ${String(at)}: expected ${want[at] ?? ''}, got ${texts[at] ?? 'nothing'}`);
    } else if (extra.some((entry) => !CLEANUP_OPS.has(entry['op']))) {
      out.push(`unexpected ${texts[want.length] ?? ''}`);
    }
  }
  return out;
}

/** True when the only difference is clean-up steps that the model did not reach. */
function isFurtherCleanup(want: readonly string[], got: readonly TraceEntry[], at: number): boolean {
  const rest = got.filter((entry, i) => i < at || !CLEANUP_OPS.has(entry['op'])).map(summary);
  return rest.length === want.length && rest.every((text, i) => text === want[i]);
}

function diffRequests(
  expected: readonly TraceEntry[],
  actual: readonly TraceEntry[],
  stored: Vmi | undefined,
): readonly string[] {
  const got = actual.filter(isOf('rpc'));
  return expected.filter(isOf('rpc')).flatMap((entry, i) => {
    const mine = got[i];
    if (mine === undefined || mine['rpc'] !== entry['rpc']) return [];
    const want = 'vmiDiff' in entry ? applyDiff(stored, entry['vmiDiff'] as readonly Operation[]) : entry['vmi'];
    const vmi = want === undefined ? [] : diffJson(essence(want), essence(mine['vmi']), `/${String(entry['rpc'])}/vmi`);
    const options = diffJson(essence(entry['options']), essence(mine['options']), `/${String(entry['rpc'])}/options`);
    return [...vmi, ...options];
  });
}

function earliest(trace: readonly TraceEntry[]): string {
  const requeues = trace.filter(isOf('requeue'));
  const delays = requeues.map((entry) => entry['after']).filter((after) => typeof after === 'number');
  if (delays.length > 0) return `${String(Math.min(...delays))} s`;
  return requeues.length > 0 ? 'rate limited' : 'never';
}

/** Texts whose tail comes from Go's libraries; only the beginning counts. */
const FREE_TAILS: readonly RegExp[] = [
  /^unable to create virt-launcher client connection: (?=context deadline exceeded|.*(dial|connect))/,
  /^failed to set up file ownership for [^:]+: failed opening /,
  /failed opening /,
  /^(?=lstat )/,
];

function isSameText(expected: string, actual: string): boolean {
  const pattern = expected
    .split('<n>')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('\\d+');
  if (new RegExp(`^${pattern}$`, 's').test(actual)) return true;
  return FREE_TAILS.some((tail) => {
    const found = tail.exec(expected);
    return found !== null && actual.startsWith(expected.slice(0, found.index + found[0].length));
  });
}

/** Gives both sides the same text where only its beginning is binding. */
function alignTexts(expected: unknown, actual: unknown): unknown {
  if (typeof expected === 'string' && typeof actual === 'string') {
    return isSameText(expected, actual) ? expected : actual;
  }
  if (Array.isArray(actual)) return actual.map((item, i) => alignTexts((expected as unknown[] | undefined)?.[i], item));
  if (typeof actual !== 'object' || actual === null) return actual;
  const other = (typeof expected === 'object' && expected !== null ? expected : {}) as Json;
  return Object.fromEntries(Object.entries(actual).map(([key, inner]) => [key, alignTexts(other[key], inner)]));
}

/**
 * A ghost record goes with the final clean-up only, so that a launcher whose connection failed is not lost (FM-3.1):
 * records that the model removed earlier may still be there.
 */
function diffAfter(expected: CaseAfter, actual: CaseAfter, key: string): readonly string[] {
  const isOwn = (record: Readonly<Record<string, string>>): boolean =>
    `${record['namespace'] ?? ''}/${record['name'] ?? ''}` === key;
  const kept = actual.ghostRecords.filter(
    (record) => !isOwn(record) || expected.ghostRecords.some((other) => isOwn(other)),
  );
  const order = (records: readonly Readonly<Record<string, string>>[]) =>
    [...records].sort((a, b) => ((a['uid'] ?? '') < (b['uid'] ?? '') ? -1 : 1));
  return [
    ...diffJson(expected.domainInStore, actual.domainInStore, '/after/domainInStore'),
    ...diffJson(expected.expectationOpen, actual.expectationOpen, '/after/expectationOpen'),
    ...diffJson(order(expected.ghostRecords), order(kept), '/after/ghostRecords'),
    ...diffJson(expected.filesInLauncherRoot ?? [], actual.filesInLauncherRoot ?? [], '/after/filesInLauncherRoot'),
    ...diffJson(expected.launcherClients, actual.launcherClients, '/after/launcherClients'),
  ];
}

/**
 * Where a pass differs in a case that may deviate: it must not fail where the model does not.
 */
export function diffDeviating(expected: CasePass, actual: PassOutcome): readonly string[] {
  return actual.error === null ? [] : diffJson(expected.error, actual.error, '/error');
}

/** Where a pass differs from the recorded one. */
export function diffPass(expected: CasePass, actual: PassOutcome, key: string): readonly string[] {
  const trace = alignTexts(expected.trace, actual.trace) as readonly TraceEntry[];
  const aligned = alignEvents(expected.trace, trace);
  const error = alignTexts(expected.error, actual.error);
  const update = alignTexts(essence(expected.update), essence(actual.update));
  return [
    ...diffJson(expected.error, error, '/error'),
    ...diffTrace(expected.trace, aligned),
    ...diffRequests(expected.trace, aligned, actual.stored),
    ...(earliest(expected.trace) === earliest(aligned)
      ? []
      : [`requeue: expected ${earliest(expected.trace)}, got ${earliest(aligned)}`]),
    ...diffJson(essence(expected.update), update, '/update'),
    ...diffAfter(expected.after, actual.after, key),
  ];
}

/** Events in order, each with the recorded text where only its beginning counts. */
function alignEvents(expected: readonly TraceEntry[], actual: readonly TraceEntry[]): readonly TraceEntry[] {
  const wanted = expected.filter(isOf('event'));
  let i = 0;
  return actual.map((entry) => {
    if (entry.kind !== 'event') return entry;
    const other = wanted[i++];
    return alignTexts(other, entry) as TraceEntry;
  });
}
