import * as cmd from '../gen/kubevirt/cmd/v1/cmd.ts';
import type { DeepPartial, MessageFns } from '../gen/kubevirt/cmd/v1/cmd.ts';

/** How long KubeVirt's handler waits for an RPC: a fixed time, or what the request says plus a margin. */
export type RpcTimeout = { readonly ms: number } | { readonly marginMs: number };

/** What client and server know about an RPC. */
export interface CmdRpcInfo<Request, Response> {
  readonly request: MessageFns<Request>;
  readonly response: MessageFns<Response>;
  readonly timeout: RpcTimeout;
  /** The name that KubeVirt's handler uses for it in error texts; undefined if it passes gRPC errors on as they are. */
  readonly command: string | undefined;
}

const SHORT: RpcTimeout = { ms: 5_000 };
const LONG: RpcTimeout = { ms: 20_000 };
const FREEZE: RpcTimeout = { ms: 60_000 };
const BY_REQUEST: RpcTimeout = { marginMs: 5_000 };

function rpc<Request, Response>(
  request: MessageFns<Request>,
  response: MessageFns<Response>,
  timeout: RpcTimeout,
  command?: string,
): CmdRpcInfo<Request, Response> {
  return { request, response, timeout, command };
}

/**
 * Every RPC of the cmd service by its name on the wire.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/cmd-client/client.go
 */
export const CMD_RPCS = {
  SyncVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'SyncVMI'),
  PauseVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'Pause'),
  UnpauseVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'Unpause'),
  FreezeVirtualMachine: rpc(cmd.FreezeRequest, cmd.Response, FREEZE, 'Freeze'),
  UnfreezeVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'Unfreeze'),
  ResetVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'Reset'),
  SoftRebootVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'SoftReboot'),
  ShutdownVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'Shutdown'),
  KillVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'Kill'),
  DeleteVirtualMachine: rpc(cmd.VMIRequest, cmd.Response, LONG, 'Delete'),
  MigrateVirtualMachine: rpc(cmd.MigrationRequest, cmd.Response, LONG, 'Migrate'),
  SyncMigrationTarget: rpc(cmd.VMIRequest, cmd.Response, LONG, 'SyncMigrationTarget'),
  CancelVirtualMachineMigration: rpc(cmd.VMIRequest, cmd.Response, LONG, 'CancelMigration'),
  SignalTargetPodCleanup: rpc(cmd.VMIRequest, cmd.Response, LONG, 'SignalTargetPodCleanup'),
  FinalizeVirtualMachineMigration: rpc(cmd.VMIRequest, cmd.Response, LONG, 'FinalizeVirtualMachineMigration'),
  HotplugHostDevices: rpc(cmd.VMIRequest, cmd.Response, LONG, 'HotplugHostDevices'),
  GetDomain: rpc(cmd.EmptyRequest, cmd.DomainResponse, SHORT, 'GetDomain'),
  GetDomainStats: rpc(cmd.EmptyRequest, cmd.DomainStatsResponse, SHORT, 'GetDomainStats'),
  GetGuestInfo: rpc(cmd.EmptyRequest, cmd.GuestInfoResponse, SHORT, 'GetGuestInfo'),
  GetUsers: rpc(cmd.EmptyRequest, cmd.GuestUserListResponse, SHORT, 'GetUsers'),
  GetFilesystems: rpc(cmd.EmptyRequest, cmd.GuestFilesystemsResponse, SHORT, 'GetFilesystems'),
  Ping: rpc(cmd.EmptyRequest, cmd.Response, SHORT, 'Ping'),
  Exec: rpc(cmd.ExecRequest, cmd.ExecResponse, BY_REQUEST),
  GuestPing: rpc(cmd.GuestPingRequest, cmd.GuestPingResponse, BY_REQUEST),
  VirtualMachineMemoryDump: rpc(cmd.MemoryDumpRequest, cmd.Response, LONG, 'Memorydump'),
  GetQemuVersion: rpc(cmd.EmptyRequest, cmd.QemuVersionResponse, SHORT, 'GetQemuVersion'),
  SyncVirtualMachineCPUs: rpc(cmd.VMIRequest, cmd.Response, LONG, 'SyncVirtualMachineCPUs'),
  SyncVirtualMachineMemory: rpc(cmd.VMIRequest, cmd.Response, LONG, 'SyncVirtualMachineMemory'),
  GetSEVInfo: rpc(cmd.EmptyRequest, cmd.SEVInfoResponse, SHORT, 'GetSEVInfo'),
  GetLaunchMeasurement: rpc(cmd.VMIRequest, cmd.LaunchMeasurementResponse, SHORT, 'GetLaunchMeasurement'),
  InjectLaunchSecret: rpc(cmd.InjectLaunchSecretRequest, cmd.Response, LONG, 'InjectLaunchSecret'),
  GetDomainDirtyRateStats: rpc(cmd.EmptyRequest, cmd.DirtyRateStatsResponse, LONG, 'GetDomainDirtyRateStats'),
  GetScreenshot: rpc(cmd.VMIRequest, cmd.ScreenshotResponse, SHORT),
  BackupVirtualMachine: rpc(cmd.BackupRequest, cmd.Response, LONG, 'Backup'),
  RedefineCheckpoint: rpc(cmd.RedefineCheckpointRequest, cmd.RedefineCheckpointResponse, LONG),
  GetVMStats: rpc(cmd.VMStatsRequest, cmd.VMStatsResponse, SHORT, 'GetVMStats'),
} as const;

/** Name of an RPC of the cmd service, as on the wire. */
export type CmdRpc = keyof typeof CMD_RPCS;
/** A whole request, as a server receives it. */
export type CmdRequest<R extends CmdRpc> = ReturnType<(typeof CMD_RPCS)[R]['request']['decode']>;
/** A request as a caller writes it: what is left out is empty. */
export type CmdRequestInit<R extends CmdRpc> = DeepPartial<CmdRequest<R>>;
/** A whole response, as a client receives it. */
export type CmdResponse<R extends CmdRpc> = ReturnType<(typeof CMD_RPCS)[R]['response']['decode']>;

/** Names of all RPCs of the cmd service. */
export const CMD_RPC_NAMES = Object.keys(CMD_RPCS) as readonly CmdRpc[];

/** What is known about an RPC, typed by its name. */
export function rpcInfo<R extends CmdRpc>(name: R): CmdRpcInfo<CmdRequest<R>, CmdResponse<R>> {
  return CMD_RPCS[name] as unknown as CmdRpcInfo<CmdRequest<R>, CmdResponse<R>>;
}

/** The method's path in HTTP/2. */
export function rpcPath(name: CmdRpc): string {
  return `/kubevirt.cmd.v1.Cmd/${name}`;
}

/** The method's name in TypeScript. */
export function methodName<R extends CmdRpc>(name: R): Uncapitalize<R> {
  return (name.charAt(0).toLowerCase() + name.slice(1)) as Uncapitalize<R>;
}
