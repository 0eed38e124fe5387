import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CMD_RPC_NAMES, CMD_RPCS, cmdV1, connectCmd } from '@virtwire/shared-proto';
import type { CmdClient, CmdRpc } from '@virtwire/shared-proto';
import { dialGrpc } from '../emulate/transport/grpc-client.ts';
import { serveGrpc } from '../emulate/transport/grpc-server.ts';
import type { VmIdentity } from '../emulate/api.ts';
import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { startOurHandler } from '../matrix/our-handler.ts';
import { HandlerScene } from '../scenarios/handler-scene.ts';
import { VM } from '../matrix/test-vmi.ts';
import type { Capture } from './captures.ts';
import { documentsOf } from './documents.ts';
import { compareAnswers, type Verdict } from './equivalence.ts';
import { LauncherSession } from './launcher-session.ts';
import { stateAfter, stateBefore, UNKNOWN_STATE } from './recorded-state.ts';

const CALL_LIMIT_MS = 10_000;
const CMD_PREFIX = '/kubevirt.cmd.v1.Cmd/';
const INFO_BYTES = Buffer.from('0a0101', 'hex');
/** Codes of calls that never came to an answer: the launcher crashed, or took too long. */
const NO_ANSWER: readonly number[] = [1, 4, 14];
/** Names that become parts of paths. */
const NAME = /^[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?$/;

const rpcOf = ({ method }: Capture): string => method.slice(method.lastIndexOf('/') + 1);
const bytesOf = (base64: string | undefined): Buffer => Buffer.from(base64 ?? '', 'base64');
const isRpc = (name: string): name is CmdRpc => (CMD_RPC_NAMES as readonly string[]).includes(name);

/** Something that answers recorded requests, or reads recorded answers. */
export interface AnswerCheck extends AsyncDisposable {
  /** Why the answer is not equivalent to the recorded one; undefined when it is, or when none was recorded. */
  problem(capture: Capture): Promise<string | undefined>;
}

function sceneDeps() {
  const emulations = { startLauncher: startEmulatedLauncher, startHandler: startEmulatedHandler };
  const pair = { handler: 'new', launcher: 'new' } as const;
  return { pair, line: 'v1.9' as const, emulations, signal: new AbortController().signal, note: () => undefined };
}

function refusalOf(bytes: Uint8Array, type: string): string | undefined {
  const response = type.endsWith('.Response')
    ? cmdV1.Response.decode(bytes)
    : cmdV1.DomainResponse.decode(bytes).response;
  return response === undefined || response.success ? undefined : response.message;
}

/** Who the VM of a scenario is, by the first request that tells; a VM of our own when none does. */
function identityOf(captures: readonly Capture[]): VmIdentity {
  for (const capture of captures) {
    const vmi = documentsOf(capture).find(({ field }) => field === 'VMI.vmiJson');
    const found = vmi && namesIn(vmi.text);
    if (found !== undefined) return found;
  }
  return VM;
}

function namesIn(text: string): VmIdentity | undefined {
  try {
    const { metadata } = JSON.parse(text) as { readonly metadata?: Partial<VmIdentity> };
    const { namespace, name, uid } = metadata ?? {};
    const isWhole = [namespace, name, uid].every((word) => typeof word === 'string' && NAME.test(word));
    return isWhole ? (metadata as VmIdentity) : undefined;
  } catch {
    return undefined;
  }
}

const wasRefused = ({ response }: Capture): boolean =>
  response !== undefined && refusalOf(bytesOf(response.base64), response.type) !== undefined;

/**
 * Our launcher as the one that the handler of a scenario called: one launcher and one VM for the scenario, brought into
 * the state that was recorded before each call, which is then made with the recorded bytes. Disks and networks of the
 * recorded machine are not here, so a sync that succeeded is made with a VMI of the same names that needs none.
 *
 * @param scenario its calls and events, in their order.
 */
export async function launcherVerdicts(scenario: readonly Capture[]): Promise<ReadonlyMap<Capture, Verdict>> {
  const verdicts = new Map<Capture, Verdict>();
  await using session = new LauncherSession(identityOf(scenario));
  let state = UNKNOWN_STATE;
  for (const capture of scenario) {
    if (capture.channel === 'cmd') {
      const before = stateBefore(state, capture);
      const isAligned = await session.align(before);
      const isSync = rpcOf(capture) === 'SyncVirtualMachine' && capture.grpcStatus.code === 0 && !wasRefused(capture);
      const answer = isSync
        ? await session.sync(state.domain === 'none' ? 'Scheduled' : 'Running')
        : await session.call(capture.method, bytesOf(capture.request.base64));
      verdicts.set(capture, compareAnswers(capture, answer, before, isAligned));
    }
    state = stateAfter(stateBefore(state, capture), capture);
  }
  return verdicts;
}

function requestOf(rpc: CmdRpc, { request }: Capture): Record<string, unknown> {
  try {
    return CMD_RPCS[rpc].request.decode(bytesOf(request.base64)) as unknown as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Our client as the one that reads what recorded launchers answered. */
export async function clientCheck(): Promise<AnswerCheck> {
  const directory = mkdtempSync(join(tmpdir(), 'vcr'));
  const socket = join(directory, 'c');
  let next: Capture | undefined;
  const server = await serveGrpc(socket, async ({ path }) => {
    if (path.endsWith('/Info') || next === undefined) return { kind: 'message', bytes: INFO_BYTES };
    const { code, message } = next.grpcStatus;
    if (code !== 0) return { kind: 'status', code, details: message };
    return { kind: 'message', bytes: bytesOf(next.response?.base64) };
  });
  const client: CmdClient = await connectCmd(socket);
  return {
    async problem(capture) {
      const rpc = rpcOf(capture);
      if (!capture.method.startsWith(CMD_PREFIX) || !isRpc(rpc)) return undefined;
      next = capture;
      const result = await client.call(rpc, requestOf(rpc, capture));
      // Requests that would crash a launcher are not sent.
      if (!result.ok && result.error.code === 'BadRequest') return undefined;
      const { code } = capture.grpcStatus;
      if (code !== 0) return result.ok ? `our client read code ${code} as success` : undefined;
      const refusal = refusalOf(bytesOf(capture.response?.base64), capture.response?.type ?? '');
      if (result.ok) return refusal === undefined ? undefined : `our client read a refusal as success: ${refusal}`;
      if (refusal === undefined) return `our client read success as: ${result.error.message}`;
      return result.error.detail === refusal ? undefined : `our client read "${refusal}" as "${result.error.detail}"`;
    },
    async [Symbol.asyncDispose]() {
      client.close();
      await server.kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Our handler as the one that takes what recorded launchers tell. */
export async function handlerCheck(): Promise<AnswerCheck> {
  const scene = new HandlerScene(sceneDeps(), startOurHandler);
  await scene.runVm();
  const shared = join(scene.dirs.shareDir, 'domain-notify.sock');
  const connection = await dialGrpc(shared, { authority: 'localhost', userAgent: 'replay' });
  return {
    async problem(capture) {
      const answer = await connection.call(capture.method, bytesOf(capture.request.base64), CALL_LIMIT_MS);
      if (NO_ANSWER.includes(answer.code)) return `our handler gave no answer: ${answer.code} ${answer.details}`;
      const { code } = capture.grpcStatus;
      if (code !== answer.code)
        return `our handler answered code ${answer.code} (${answer.details}) instead of ${code}`;
      return undefined;
    },
    async [Symbol.asyncDispose]() {
      connection[Symbol.dispose]();
      await scene[Symbol.asyncDispose]();
    },
  };
}
