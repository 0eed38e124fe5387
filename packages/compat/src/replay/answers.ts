import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CMD_RPC_NAMES, CMD_RPCS, cmdV1, connectCmd } from '@virtwire/shared-proto';
import type { CmdClient, CmdRpc } from '@virtwire/shared-proto';
import { dialGrpc } from '../emulate/transport/grpc-client.ts';
import type { GrpcConnection, RawAnswer } from '../emulate/transport/grpc-client.ts';
import { serveGrpc } from '../emulate/transport/grpc-server.ts';
import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { startOurLauncher } from '../matrix/our-launcher.ts';
import { startOurHandler } from '../matrix/our-handler.ts';
import { HandlerScene } from '../scenarios/handler-scene.ts';
import { LauncherScene } from '../scenarios/launcher-scene.ts';
import type { Capture } from './captures.ts';

const CALL_LIMIT_MS = 10_000;
const CMD_PREFIX = '/kubevirt.cmd.v1.Cmd/';
const INFO_BYTES = Buffer.from('0a0101', 'hex');
/** Codes of calls that never came to an answer: the launcher crashed, or took too long. */
const NO_ANSWER: readonly number[] = [1, 4, 14];
/** RPCs that answer failures with code 2: whether they fail depends on the guest. */
const STATE_CODES: readonly string[] = ['Exec', 'GuestPing', 'GetVMStats'];
const NO_VMI = 'No valid vmi object present in command server request';

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

function launcherProblem(capture: Capture, answer: RawAnswer): string | undefined {
  const { code } = capture.grpcStatus;
  const rpc = rpcOf(capture);
  if (NO_ANSWER.includes(answer.code)) return `our launcher gave no answer: code ${answer.code} ${answer.details}`;
  // A launcher written in Go may have crashed, and a younger one has RPCs that an old one lacks.
  if (NO_ANSWER.includes(code) || (code === 12 && isRpc(rpc))) return undefined;
  if (STATE_CODES.includes(rpc) && [0, 2].includes(code) && [0, 2].includes(answer.code)) return undefined;
  if (answer.code !== code) return `code ${answer.code} (${answer.details}) instead of ${code}`;
  const type = capture.response?.type ?? '';
  if (code !== 0 || !type.startsWith('kubevirt.cmd.v1.')) return undefined;
  const recorded = refusalOf(bytesOf(capture.response?.base64), type);
  const ours = refusalOf(answer.bytes, type);
  // Other refusals depend on the state of a guest, which is not replayed.
  const isBadRequest = recorded === NO_VMI || ours === NO_VMI;
  if (!isBadRequest || (recorded === undefined) === (ours === undefined)) return undefined;
  return `answered ${ours ?? 'success'} instead of ${recorded ?? 'success'}`;
}

/** Our launcher as the one that recorded handlers call. */
export async function launcherCheck(): Promise<AnswerCheck> {
  const scene = new LauncherScene(sceneDeps(), startOurLauncher);
  let launcher = await scene.startLauncher();
  let connection: GrpcConnection = await dialGrpc(scene.cmdSocket, { authority: 'localhost', userAgent: 'replay' });
  return {
    async problem(capture) {
      // A recorded deletion ends the launcher, as it has to.
      if (launcher.hasEnded || !connection.isOpen) {
        connection[Symbol.dispose]();
        launcher = await scene.startLauncher();
        connection = await dialGrpc(scene.cmdSocket, { authority: 'localhost', userAgent: 'replay' });
      }
      // Whatever the recorded request does to a VM is not done to this launcher.
      if (/\/(Kill|Delete)VirtualMachine$/.test(capture.method)) return undefined;
      const answer = await connection.call(capture.method, bytesOf(capture.request.base64), CALL_LIMIT_MS);
      return launcherProblem(capture, answer);
    },
    async [Symbol.asyncDispose]() {
      connection[Symbol.dispose]();
      await scene[Symbol.asyncDispose]();
    },
  };
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
