import * as cmdV1 from './gen/kubevirt/cmd/v1/cmd.ts';
import * as notifyV1 from './gen/kubevirt/notify/v1/notify.ts';

export { normaliseAuthority } from './authority/connection.ts';
export type { CallContext, CallOptions, CallResult } from './calls.ts';
export { unwrap } from './calls.ts';
export type { CmdAnswer, CmdCalls, CmdClient, CmdHandlers } from './cmd/api.ts';
export { type CmdConnectOptions, connectCmd } from './cmd/client.ts';
export { vmiRequest } from './cmd/requests.ts';
export type { CmdRequest, CmdRequestInit, CmdResponse, CmdRpc, CmdRpcInfo, RpcTimeout } from './cmd/rpcs.ts';
export { CMD_RPC_NAMES, CMD_RPCS } from './cmd/rpcs.ts';
export { serveCmd } from './cmd/server.ts';
export type { ProtoErrorCode, ProtoErrorDetails } from './errors.ts';
export { isConnectionLoss, isRefusal, isRetryable, PROTO_ERROR_CODES, ProtoError } from './errors.ts';
export type { ConnectOptions } from './handshake.ts';
export { checkJson } from './json-check.ts';
export type {
  NotifyAnswer,
  NotifyClient,
  NotifyContext,
  NotifyEntrance,
  NotifyHandlers,
  NotifySender,
  NotifyServer,
  PeerIdentity,
} from './notify/api.ts';
export { connectNotify } from './notify/client.ts';
export type { NotifySenderDeps, NotifySenderOptions } from './notify/sender.ts';
export { createNotifySender } from './notify/sender.ts';
export { serveNotify } from './notify/server.ts';
export type { RpcServer, ServeOptions } from './server.ts';
export type { SocketPath } from './socket-path.ts';
export { fitSocketPath } from './socket-path.ts';
/** The messages of both services, each with `encode`, `decode` and `fromPartial`. */
export { cmdV1, notifyV1 };
