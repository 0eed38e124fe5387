export type { CallContext, CallOptions, CallResult } from './calls.ts';
export { unwrap } from './calls.ts';
export type { CmdAnswer, CmdCalls, CmdClient, CmdHandlers } from './cmd/api.ts';
export type { CmdRequest, CmdRequestInit, CmdResponse, CmdRpc, CmdRpcInfo, CmdRpcTypes, RpcTimeout } from './cmd/rpcs.ts';
export { CMD_RPC_NAMES, CMD_RPCS } from './cmd/rpcs.ts';
export type { ProtoErrorCode, ProtoErrorDetails } from './errors.ts';
export { isConnectionLoss, isRetryable, PROTO_ERROR_CODES, ProtoError } from './errors.ts';
export * as cmdV1 from './gen/kubevirt/cmd/v1/cmd.ts';
export * as notifyV1 from './gen/kubevirt/notify/v1/notify.ts';
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
export type { RpcServer, ServeOptions } from './server.ts';
