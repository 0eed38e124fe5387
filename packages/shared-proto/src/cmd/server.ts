import { status } from '@grpc/grpc-js';

import type { CallContext } from '../calls.ts';
import { CmdInfoResponse } from '../gen/kubevirt/cmd/info/info.ts';
import { PROTOCOL_VERSION } from '../handshake.ts';
import { createRpcHost, errorText, type RpcMethod, StatusError } from '../rpc-host.ts';
import { hostOptions, listenUnix, type RpcServer, type ServeOptions } from '../server.ts';
import type { CmdAnswer, CmdHandlers } from './api.ts';
import { checkRequest } from './checks.ts';
import { CMD_RPC_NAMES, type CmdRequest, type CmdResponse, type CmdRpc, methodName, rpcInfo, rpcPath } from './rpcs.ts';

/** RPCs whose failures travel as a gRPC error of code Unknown. @source KubeVirt v1.9.0 cmd-server/server.go */
const STATUS_ERRORS: readonly CmdRpc[] = ['Exec', 'GuestPing', 'GetVMStats'];

/** The words of grpc-go for bytes that are no message. */
const UNMARSHAL_TEXT = 'grpc: error unmarshalling request: proto: cannot parse invalid wire-format data';

type Handle<R extends CmdRpc> = (request: CmdRequest<R>, context: CallContext) => Promise<CmdAnswer<R>>;

/**
 * Serves a launcher's cmd socket: the cmd service and its info service, for peers of every release.
 *
 * Requests that would crash a launcher written in Go (no VMI, no options, a timeout of zero) are answered with an
 * error before a handler sees them. Connections that never send a byte are taken and forgotten.
 *
 * @param socketPath a file in its place is removed; the server may be renamed while it runs.
 * @throws {ProtoError} `ListenFailed`.
 */
export function serveCmd(socketPath: string, handlers: CmdHandlers, options: ServeOptions = {}): Promise<RpcServer> {
  const limits = hostOptions(options);
  const host = createRpcHost([infoMethod(options.versions), ...cmdMethods(handlers)], limits);
  return listenUnix(socketPath, host, limits);
}

function infoMethod(versions: readonly number[] = [PROTOCOL_VERSION]): RpcMethod {
  const answer = CmdInfoResponse.encode(CmdInfoResponse.fromPartial({ supportedCmdVersions: [...versions] })).finish();
  return { path: '/kubevirt.cmd.info.CmdInfo/Info', handle: () => Promise.resolve(answer) };
}

function cmdMethods(handlers: CmdHandlers): readonly RpcMethod[] {
  return CMD_RPC_NAMES.flatMap((rpc) => {
    const handler = handlers[methodName(rpc)];
    if (handler === undefined) return [];
    // The handler of a name takes that name's request; TypeScript cannot follow that through the loop.
    const handle = handler.bind(handlers) as unknown as Handle<typeof rpc>;
    return [cmdMethod(rpc, handle)];
  });
}

function cmdMethod<R extends CmdRpc>(rpc: R, handler: Handle<R>): RpcMethod {
  const { response } = rpcInfo(rpc);
  return {
    path: rpcPath(rpc),
    handle: async (bytes, context) => {
      const request = decodeRequest(rpc, bytes);
      const refusal = checkRequest(rpc, request);
      if (refusal !== undefined) return response.encode(failure(rpc, refusal)).finish();
      try {
        return response.encode(success(rpc, await handler(request, context))).finish();
      } catch (caught) {
        return response.encode(failure(rpc, errorText(caught))).finish();
      }
    },
  };
}

function decodeRequest<R extends CmdRpc>(rpc: R, bytes: Buffer): CmdRequest<R> {
  const { request } = rpcInfo(rpc);
  try {
    return completeOptions(request.decode(bytes));
  } catch {
    throw new StatusError(status.INTERNAL, UNMARSHAL_TEXT);
  }
}

/** Handlers read `options` of a VMIRequest without asking whether it is there. */
function completeOptions<T>(request: T): T {
  const message = request as { options?: unknown };
  if ('options' in message && message.options === undefined) {
    message.options = rpcInfo('SyncVirtualMachine').request.fromPartial({ options: {} }).options;
  }
  return request;
}

/** What an answer says, with success where it says nothing else. */
function success<R extends CmdRpc>(rpc: R, answer: CmdAnswer<R>): CmdResponse<R> {
  const { response } = rpcInfo(rpc);
  type Init = Parameters<typeof response.fromPartial>[0];
  const given = (answer ?? {}) as object;
  if (isPlainResponse(rpc)) return response.fromPartial({ success: true, ...given } as Init);
  const outcome = 'response' in given && given.response !== undefined ? given.response : {};
  return response.fromPartial({ ...given, response: { success: true, ...(outcome as object) } } as Init);
}

function failure<R extends CmdRpc>(rpc: R, message: string): CmdResponse<R> {
  if (STATUS_ERRORS.includes(rpc)) throw new StatusError(status.UNKNOWN, message);
  const outcome = { success: false, message };
  return success(rpc, (isPlainResponse(rpc) ? outcome : { response: outcome }) as CmdAnswer<R>);
}

function isPlainResponse(rpc: CmdRpc): boolean {
  return rpcInfo(rpc).response === (rpcInfo('Ping').response as unknown);
}
