import { cmdV1 } from '@virtwire/shared-proto';
import { compareReleases, openHistory } from '@virtwire/shared-proto/history';
import type { RawAnswer } from '../emulate/transport/grpc-client.ts';
import type { Capture } from './captures.ts';
import type { RecordedState } from './recorded-state.ts';

/** What came of comparing an answer with the recorded one. */
export type Verdict =
  | { readonly kind: 'equal' }
  | { readonly kind: 'different'; readonly problem: string }
  /** Nobody can compare them, or they differ as they have to. */
  | { readonly kind: 'open'; readonly reason: string };

/** How a call ended, whatever it answered. */
type Outcome =
  | { readonly kind: 'success' }
  | { readonly kind: 'refused'; readonly text: string }
  | { readonly kind: 'status'; readonly code: number; readonly text: string };

interface Pair {
  readonly rpc: string;
  readonly release: string;
  readonly state: RecordedState;
  readonly recorded: Outcome;
  readonly ours: Outcome;
}

const UNKNOWN = 2;
const UNIMPLEMENTED = 12;
/** Codes of calls that never came to an answer: the launcher crashed, or took too long. */
const NO_ANSWER: readonly number[] = [1, 4, 14];
const EQUAL: Verdict = { kind: 'equal' };
const open = (reason: string): Verdict => ({ kind: 'open', reason });

const textOf = (outcome: Outcome): string => (outcome.kind === 'success' ? '' : outcome.text);
const isRefusal = (outcome: Outcome): boolean =>
  outcome.kind === 'refused' || (outcome.kind === 'status' && outcome.code === UNKNOWN);
const isBefore = (release: string, other: string): boolean =>
  openHistory().releases.includes(release) && compareReleases(release, other) < 0;

/** @source wire.md 6, GuestPing */
const refusesEarlyPings = (release: string): boolean =>
  isBefore(release, 'v1.7.4') || (isBefore(release, 'v1.8.3') && !isBefore(release, 'v1.8.0'));

/** libvirt's number of an error, in both forms in which launchers print it. */
const libvirtCode = (outcome: Outcome): string | undefined =>
  /\b(?:Libvirt|vir)Error\(Code=(\d+)/.exec(textOf(outcome))?.[1];
/** No domain, not running, no agent: these follow from the state, which is replayed. */
const STATE_CODES: readonly string[] = ['42', '55', '86'];

/**
 * Why an answer may differ: what depends on more than the state that is replayed, and what has changed since the
 * recorded release. The first that fits counts.
 */
const REASONS: readonly (readonly [reason: string, fits: (pair: Pair) => boolean])[] = [
  [
    'the recorded release lacks the RPC',
    ({ recorded }) => recorded.kind === 'status' && recorded.code === UNIMPLEMENTED,
  ],
  [
    'the recorded call came to no answer',
    ({ recorded }) => recorded.kind === 'status' && NO_ANSWER.includes(recorded.code),
  ],
  ['a program in the guest', ({ rpc, state }) => rpc === 'Exec' && state.hasAgent],
  ['an option of the launcher', ({ rpc }) => rpc === 'GetVMStats'],
  [
    'statistics without a domain, by release or from a cache',
    ({ rpc, state }) => rpc === 'GetDomainStats' && state.domain !== 'Running' && state.domain !== 'Paused',
  ],
  [
    'launchers before v1.9 refuse to cancel what does not run',
    ({ rpc, release }) => rpc === 'CancelVirtualMachineMigration' && isBefore(release, 'v1.9.0'),
  ],
  [
    'launchers before v1.7.4, and v1.8.0 to v1.8.2, refuse a ping without a domain',
    ({ rpc, release, state }) => rpc === 'GuestPing' && state.domain === 'none' && refusesEarlyPings(release),
  ],
  ['a measurement of the dirty rate that was not ready', ({ rpc }) => rpc === 'GetDomainDirtyRateStats'],
  [
    'a backup of disks of the recorded machine',
    ({ rpc, recorded }) => /^(BackupVirtualMachine|RedefineCheckpoint)$/.test(rpc) && recorded.kind === 'success',
  ],
  ['a migration, which has no other side here', ({ rpc }) => /^(Migrate|SyncMigrationTarget)/.test(rpc)],
  ['disks of the recorded machine', ({ ours }) => textOf(ours).includes('no such file or directory')],
  [
    'a refusal of libvirt, which one in memory does not know',
    ({ recorded, ours }) => {
      const code = libvirtCode(recorded);
      return code !== undefined && !STATE_CODES.includes(code) && ours.kind === 'success';
    },
  ],
];

/** The outcome of an answer. @throws {Error} for bytes that are none. */
function outcomeOf(code: number, details: string, bytes: Uint8Array, type: string): Outcome {
  if (code !== 0) return { kind: 'status', code, text: details };
  if (!type.startsWith('kubevirt.cmd.v1.')) return { kind: 'success' };
  const isPlain = type.endsWith('.Response');
  const response = isPlain ? cmdV1.Response.decode(bytes) : cmdV1.DomainResponse.decode(bytes).response;
  const isGood = response === undefined || response.success;
  return isGood ? { kind: 'success' } : { kind: 'refused', text: response.message };
}

const render = (outcome: Outcome): string => {
  if (outcome.kind === 'success') return 'success';
  return outcome.kind === 'refused' ? `a refusal: ${outcome.text}` : `code ${outcome.code}: ${outcome.text}`;
};

/** Whether two outcomes are of one kind; texts of libvirt are compared by libvirt's numbers, others are not ours to repeat. */
function isEquivalent({ recorded, ours }: Pair): boolean {
  if (isRefusal(recorded) && isRefusal(ours)) {
    if (recorded.kind !== ours.kind) return false;
    const [a, b] = [libvirtCode(recorded), libvirtCode(ours)];
    return !(a !== undefined && b !== undefined && STATE_CODES.includes(a) && a !== b);
  }
  if (recorded.kind === 'status' && ours.kind === 'status') return recorded.code === ours.code;
  return recorded.kind === ours.kind;
}

/**
 * Compares our launcher's answer with the recorded one.
 *
 * @param isAligned whether our VM was in the recorded state.
 */
export function compareAnswers(capture: Capture, answer: RawAnswer, state: RecordedState, isAligned: boolean): Verdict {
  const { grpcStatus, response, method, release } = capture;
  const rpc = method.slice(method.lastIndexOf('/') + 1);
  const type = response?.type ?? '';
  let pair: Pair;
  try {
    const recorded = outcomeOf(
      grpcStatus.code,
      grpcStatus.message,
      Buffer.from(response?.base64 ?? '', 'base64'),
      type,
    );
    pair = { rpc, release, state, recorded, ours: outcomeOf(answer.code, answer.details, answer.bytes, type) };
  } catch (caught) {
    return { kind: 'different', problem: `an answer cannot be decoded: ${String(caught)}` };
  }
  // Whatever was recorded, our launcher answers.
  if (NO_ANSWER.includes(answer.code)) {
    return { kind: 'different', problem: `our launcher gave no answer: code ${answer.code} ${answer.details}` };
  }
  if (isEquivalent(pair)) return EQUAL;
  const [reason] = REASONS.find(([, fits]) => fits(pair)) ?? [];
  if (reason !== undefined) return open(reason);
  if (!isAligned) return open(`a domain that is ${state.domain}, into which ours cannot be brought`);
  return {
    kind: 'different',
    problem: `our launcher answers ${render(pair.ours)}, recorded is ${render(pair.recorded)}`,
  };
}
