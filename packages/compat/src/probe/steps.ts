import { CMD_RPCS, type CmdRpc } from '@virtwire/shared-proto';
import type { Fields } from '../emulate/schema/release-schema.ts';
import type { Findings } from './findings.ts';
import { CODE, type ProbeAnswer, type ProbePeer } from './peer.ts';

/** What a call has to lead to. */
export type Expectation =
  /** Success. */
  | 'success'
  /** A refusal with such a text: success=false, or gRPC's code 2 for the RPCs that answer so. */
  | { readonly refused: RegExp }
  /** Either of them: it depends on the guest, on QEMU, or on the release. */
  | { readonly mayRefuse: RegExp };

/** One call of a probe. */
export interface Step {
  readonly rpc: CmdRpc;
  /** In which state, or with what. */
  readonly label: string;
  readonly request?: Fields;
  readonly expect: Expectation;
  /** What is wrong with the content of a successful answer. */
  readonly verify?: (fields: Fields) => string | undefined;
}

const CMD = '/kubevirt.cmd.v1.Cmd/';
/** RPCs that answer failures with a gRPC error. @source wire.md 2, Errors */
const STATUS_RPCS: readonly CmdRpc[] = ['Exec', 'GuestPing', 'GetVMStats'];
const AGENT_LIMIT_MS = 10_000;

function timeoutOf(rpc: CmdRpc): number {
  const { timeout } = CMD_RPCS[rpc];
  return 'ms' in timeout ? timeout.ms : AGENT_LIMIT_MS;
}

/** Runs steps one after the other and notes what came of each; those of an RPC that the peer lacks are left out. */
export async function runSteps(peer: ProbePeer, findings: Findings, steps: readonly Step[]): Promise<void> {
  for (const step of steps) await runStep(peer, findings, step);
}

/** Runs one step. @returns the answer; undefined when the peer lacks the RPC. */
export async function runStep(peer: ProbePeer, findings: Findings, step: Step): Promise<ProbeAnswer | undefined> {
  const { rpc, label, request = {} } = step;
  if (findings.isMissing(rpc)) return undefined;
  const answer = await peer.call(`${CMD}${rpc}`, request, timeoutOf(rpc));
  if (answer.code === CODE.unimplemented) {
    findings.missing(rpc, answer.details);
    return undefined;
  }
  const problem = judge(step, answer);
  if (problem === undefined) findings.good(rpc, `${label}: ${renderOutcome(answer)}`);
  else findings.bad(rpc, `${label}: ${problem}`);
  return answer;
}

function renderOutcome({ code, details, outcome }: ProbeAnswer): string {
  if (code !== CODE.ok) return `refused: ${details}`;
  return outcome?.success === true ? 'ok' : `refused: ${outcome?.message ?? ''}`;
}

/** What is wrong with an answer; undefined when it is as expected. */
function judge({ rpc, expect, verify }: Step, answer: ProbeAnswer): string | undefined {
  const { code, details, outcome, fields, flaw } = answer;
  if (flaw !== undefined) return flaw;
  if (code === CODE.deadline) return 'it gives no answer in time';
  if (code === CODE.unavailable) return `it breaks the connection: ${details}`;
  const answersStatus = STATUS_RPCS.includes(rpc);
  if (code !== CODE.ok && !(answersStatus && code === CODE.unknown)) return `it answers gRPC code ${code}: ${details}`;
  const refusal = code !== CODE.ok ? details : outcome?.success === true ? undefined : (outcome?.message ?? '');
  return refusal === undefined ? judgeSuccess(expect, fields, verify) : judgeRefusal(expect, refusal);
}

function judgeSuccess(expect: Expectation, fields: Fields, verify: Step['verify']): string | undefined {
  const mustRefuse = typeof expect === 'object' && 'refused' in expect;
  return mustRefuse ? 'it succeeds, and has to refuse' : verify?.(fields);
}

function judgeRefusal(expect: Expectation, refusal: string): string | undefined {
  if (expect === 'success') return `it refuses: ${refusal === '' ? 'without a text' : refusal}`;
  const expected = 'refused' in expect ? expect.refused : expect.mayRefuse;
  return expected.test(refusal) ? undefined : `it refuses with other words: ${refusal === '' ? 'none' : refusal}`;
}
