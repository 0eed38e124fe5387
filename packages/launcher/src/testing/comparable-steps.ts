import { bindingTraces, isBinding } from './compare-vector.ts';
import type { TraceEntry, VectorInput, VectorOutput } from './vector-types.ts';

type RecordedStep = VectorOutput['steps'][number];

/** What a launcher did in one step of a case. */
interface PlayedStep {
  readonly trace: readonly TraceEntry[];
}

/** The binding calls of one step: as recorded, and as played. */
export interface ComparableStep {
  readonly expected: readonly unknown[];
  readonly actual: readonly unknown[];
}

/** How long the recorded launcher tries to send an event. */
const SEND_LIMIT_MS = 20_000;
/** An attempt at the limit itself may or may not be made. */
const SLACK_MS = 1_500;
const EVENT_MS = 50;

/**
 * The binding calls of a case, step by step, without what this launcher does otherwise on purpose:
 *
 * - FM-2.1: an event that could not be sent for 20 s is lost in the recorded launcher; here the newest state goes out
 *   when the pipe is back.
 * - FM-9.7: the guest's clock is set after every pause, not only after the first.
 * - Arguments of a guest command are escaped.
 * - Host devices are not attached a second time to word an error.
 * - No command is sent to the agent of a domain that is not there.
 * - A request at whose end the recorded launcher crashed over a nil pointer may be carried out.
 *
 * @param inPod takes the root of the played launcher out of a text.
 */
export function comparableSteps(
  input: VectorInput,
  recorded: readonly RecordedStep[],
  played: readonly PlayedStep[],
  inPod: (text: string) => string,
): readonly ComparableStep[] {
  const wantsTime = recorded.map(({ trace }) => (trace ?? []).some(isSettingTime));
  const pairs = recorded.map(({ trace, rpc }, i) => {
    const hadTime = wantsTime.slice(0, i).includes(true) && wantsTime[i] === false;
    const own = (played[i]?.trace ?? []).filter((entry) => !(hadTime && isSettingTime(entry)));
    const theirs = rpc === 'HotplugHostDevices' ? attachedOnce(trace ?? []) : (trace ?? []);
    const actual = own.map((entry) => asRecorded(entry, inPod));
    return { expected: reachable(theirs, input), actual: isAccident(recorded[i]) ? upTo(theirs, actual) : actual };
  });
  return withoutLateNews(input, pairs).map(({ expected, actual }) => bindingTraces(expected, actual));
}

/** Whether the recorded launcher crashed over a mistake of its own, as against ending on purpose. */
export function isAccident(step: Pick<RecordedStep, 'panic'> | undefined): boolean {
  return step?.panic?.startsWith('runtime error') === true;
}

/** As much of a trace as has the binding calls of another. */
function upTo(other: readonly TraceEntry[], trace: readonly TraceEntry[]): readonly TraceEntry[] {
  return trace.filter(isBinding).slice(0, other.filter(isBinding).length);
}

const isSettingTime = ({ libvirt }: TraceEntry): boolean => libvirt === 'SetTime';

function attachedOnce(trace: readonly TraceEntry[]): readonly TraceEntry[] {
  const isFirst = (entry: TraceEntry, i: number): boolean =>
    trace.findIndex(({ libvirt, xml }) => libvirt === 'AttachDeviceFlags' && xml === entry['xml']) === i;
  return trace.filter((entry, i) => entry['libvirt'] !== 'AttachDeviceFlags' || isFirst(entry, i));
}

/** Where there is no domain, the recorded agent commands went nowhere; this launcher looks first. */
function reachable(trace: readonly TraceEntry[], { domain, steps }: VectorInput): readonly TraceEntry[] {
  const isThere = domain != null || steps.some((step) => step.domain != null || step.rpc === 'SyncVirtualMachine');
  return trace.filter((entry) => isThere || entry['agent'] === undefined);
}

function asRecorded(entry: TraceEntry, inPod: (text: string) => string): TraceEntry {
  if (typeof entry['xml'] === 'string') return { ...entry, xml: inPod(entry['xml']) };
  if (entry['libvirt'] === 'MigrateToURI3') return migrationAsRecorded(entry, inPod);
  if (entry['agent'] !== 'guest-exec' || typeof entry['command'] !== 'string') return entry;
  const command = entry['command'].replaceAll(/\\(?:u[0-9a-f]{4}|.)/g, (escape) => JSON.parse(`"${escape}"`) as string);
  return { ...entry, command };
}

function migrationAsRecorded(entry: TraceEntry, inPod: (text: string) => string): TraceEntry {
  const params = Object.entries((entry['params'] ?? {}) as Readonly<Record<string, unknown>>).map(
    ([name, value]) => [name, typeof value === 'string' ? inPod(value) : value] as const,
  );
  return { ...entry, uri: inPod(String(entry['uri'])), params: Object.fromEntries(params) };
}

interface TracePair {
  readonly expected: readonly TraceEntry[];
  readonly actual: readonly TraceEntry[];
}

/** After an event is lost, connections are not compared, and the state that is sent late is left out. */
function withoutLateNews(input: VectorInput, pairs: readonly TracePair[]): readonly TracePair[] {
  const startsMs = input.steps.map((_step, i) =>
    input.steps.slice(0, i).reduce((sum, step) => sum + (step.ms ?? EVENT_MS), 0),
  );
  const atMs = (entry: TraceEntry, i: number): number => (startsMs[i] ?? 0) + (entry.at ?? 0);
  const connects = pairs.flatMap(({ expected }, i) =>
    expected.filter(isConnect).map((entry) => ({ atMs: atMs(entry, i), isDown: entry['error'] !== undefined })),
  );
  const firstUp = connects.findIndex(({ isDown }) => !isDown);
  const failed = firstUp < 0 ? connects : connects.slice(0, firstUp);
  const [first] = failed;
  const last = failed.at(-1);
  if (first === undefined || last === undefined || last.atMs - first.atMs < SEND_LIMIT_MS - SLACK_MS) return pairs;
  let isKeptStateSeen = false;
  const lostAtMs = last.atMs + EVENT_MS;
  const isComparable = (entry: TraceEntry, i: number): boolean => atMs(entry, i) <= lostAtMs || !isConnect(entry);
  return pairs.map(({ expected, actual }, i) => ({
    expected: expected.filter((entry) => isComparable(entry, i)),
    actual: actual.filter((entry) => {
      const isLate = atMs(entry, i) > lostAtMs && entry['notify'] === 'HandleDomainEvent';
      if (!isLate || isKeptStateSeen) return isComparable(entry, i);
      isKeptStateSeen = true;
      return false;
    }),
  }));
}

const isConnect = ({ notify }: TraceEntry): boolean => notify === 'connect';
