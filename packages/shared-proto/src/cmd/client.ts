import type { CallOptions, CallResult } from '../calls.ts';
import { answerError, callError, commandTexts, decodeError, type ErrorTexts, plainTexts } from '../call-errors.ts';
import type { UnixChannel } from '../channel.ts';
import { ProtoError } from '../errors.ts';
import { CmdInfoResponse } from '../gen/kubevirt/cmd/info/info.ts';
import { connect, type ConnectOptions, type InfoService } from '../handshake.ts';
import type { CmdCalls, CmdClient } from './api.ts';
import { buildRequest } from './requests.ts';
import {
  CMD_RPC_NAMES,
  type CmdRequestInit,
  type CmdResponse,
  type CmdRpc,
  methodName,
  rpcInfo,
  rpcPath,
  type RpcTimeout,
} from './rpcs.ts';
import { outcomeOf } from './outcome.ts';

const CMD_INFO: InfoService = {
  protocol: 'cmd',
  path: '/kubevirt.cmd.info.CmdInfo/Info',
  decodeVersions: (bytes) => CmdInfoResponse.decode(bytes).supportedCmdVersions,
};

/** Options of connecting to a launcher. */
export interface CmdConnectOptions extends ConnectOptions {
  /** Told how each call ended, before its caller is. What it throws reaches the caller. */
  readonly onResult?: ((rpc: CmdRpc, result: CallResult<CmdResponse<CmdRpc>>) => void) | undefined;
}

/**
 * Connects to a launcher's cmd socket, as KubeVirt's handler does: dial within 2 s, version check within 5 s.
 *
 * A socket that is missing or refuses fails at once.
 *
 * @throws {ProtoError} `DialFailed`, `VersionCheckFailed`, `NoCommonVersion`, `VersionUnsupported` or `Aborted`.
 */
export async function connectCmd(socketPath: string, options: CmdConnectOptions = {}): Promise<CmdClient> {
  const { channel, version } = await connect(socketPath, CMD_INFO, options);
  return createCmdClient(socketPath, version, channel, options.onResult);
}

function createCmdClient(
  socketPath: string,
  version: number,
  channel: UnixChannel,
  onResult: CmdConnectOptions['onResult'],
): CmdClient {
  const call: CmdClient['call'] = async (rpc, request, options) => {
    const result = await callCmd(channel, rpc, request, options);
    onResult?.(rpc, result);
    return result;
  };
  const methods = Object.fromEntries(
    CMD_RPC_NAMES.map((rpc) => [
      methodName(rpc),
      (request?: CmdRequestInit<typeof rpc>, options?: CallOptions) => call(rpc, request, options),
    ]),
  ) as unknown as CmdCalls; // one method per name, by construction
  const close = (): void => channel[Symbol.dispose]();
  return {
    ...methods,
    socketPath,
    version,
    call,
    onConnectionLost: (listener) => channel.onLost(listener),
    close,
    [Symbol.dispose]: close,
  };
}

async function callCmd<R extends CmdRpc>(
  channel: UnixChannel,
  rpc: R,
  init: CmdRequestInit<R> | undefined,
  options: CallOptions = {},
): Promise<CallResult<CmdResponse<R>>> {
  const info = rpcInfo(rpc);
  const request = buildRequest(rpc, init);
  if (request instanceof ProtoError) return { ok: false, error: request };
  const timeoutMs = options.timeoutMs ?? deadlineOf(info.timeout, request);
  const bytes = info.request.encode(request).finish();
  const result = await channel.call(rpcPath(rpc), bytes, { timeoutMs, signal: options.signal });
  const texts = textsOf(rpc);
  if (!result.ok) return { ok: false, error: callError(result.failure, texts) };
  try {
    const value = info.response.decode(result.bytes);
    const outcome = outcomeOf(value);
    if (outcome === undefined || outcome.success) return { ok: true, value };
    return { ok: false, error: answerError(outcome.message, texts), answer: value };
  } catch (caught) {
    return { ok: false, error: decodeError(caught, texts) };
  }
}

function deadlineOf(timeout: RpcTimeout, request: object): number {
  if ('ms' in timeout) return timeout.ms;
  const seconds =
    'timeoutSeconds' in request && typeof request.timeoutSeconds === 'number' ? request.timeoutSeconds : 0;
  return Math.max(0, seconds) * 1_000 + timeout.marginMs;
}

const REDEFINE_TEXTS: ErrorTexts = {
  call: (rendered) => `RedefineCheckpoint call failed: ${rendered}`,
  answer: (message) => `RedefineCheckpoint failed: ${message}`,
  changesAll: true,
};

function textsOf(rpc: CmdRpc): ErrorTexts {
  if (rpc === 'RedefineCheckpoint') return REDEFINE_TEXTS;
  const { command } = rpcInfo(rpc);
  return command === undefined ? plainTexts(rpc) : commandTexts(command);
}
