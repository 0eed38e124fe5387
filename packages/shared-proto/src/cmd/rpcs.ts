import type * as cmd from '../gen/kubevirt/cmd/v1/cmd.ts';
import type { DeepPartial } from '../gen/kubevirt/cmd/v1/cmd.ts';

type Pair<Request, Response> = { readonly request: Request; readonly response: Response };

/** Request and response of every RPC of the cmd service, by its name on the wire. */
export interface CmdRpcTypes {
  readonly SyncVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly PauseVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly UnpauseVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly FreezeVirtualMachine: Pair<cmd.FreezeRequest, cmd.Response>;
  readonly UnfreezeVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly ResetVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly SoftRebootVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly ShutdownVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly KillVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly DeleteVirtualMachine: Pair<cmd.VMIRequest, cmd.Response>;
  readonly MigrateVirtualMachine: Pair<cmd.MigrationRequest, cmd.Response>;
  readonly SyncMigrationTarget: Pair<cmd.VMIRequest, cmd.Response>;
  readonly CancelVirtualMachineMigration: Pair<cmd.VMIRequest, cmd.Response>;
  readonly SignalTargetPodCleanup: Pair<cmd.VMIRequest, cmd.Response>;
  readonly FinalizeVirtualMachineMigration: Pair<cmd.VMIRequest, cmd.Response>;
  readonly HotplugHostDevices: Pair<cmd.VMIRequest, cmd.Response>;
  readonly GetDomain: Pair<cmd.EmptyRequest, cmd.DomainResponse>;
  readonly GetDomainStats: Pair<cmd.EmptyRequest, cmd.DomainStatsResponse>;
  readonly GetGuestInfo: Pair<cmd.EmptyRequest, cmd.GuestInfoResponse>;
  readonly GetUsers: Pair<cmd.EmptyRequest, cmd.GuestUserListResponse>;
  readonly GetFilesystems: Pair<cmd.EmptyRequest, cmd.GuestFilesystemsResponse>;
  readonly Ping: Pair<cmd.EmptyRequest, cmd.Response>;
  readonly Exec: Pair<cmd.ExecRequest, cmd.ExecResponse>;
  readonly GuestPing: Pair<cmd.GuestPingRequest, cmd.GuestPingResponse>;
  readonly VirtualMachineMemoryDump: Pair<cmd.MemoryDumpRequest, cmd.Response>;
  readonly GetQemuVersion: Pair<cmd.EmptyRequest, cmd.QemuVersionResponse>;
  readonly SyncVirtualMachineCPUs: Pair<cmd.VMIRequest, cmd.Response>;
  readonly SyncVirtualMachineMemory: Pair<cmd.VMIRequest, cmd.Response>;
  readonly GetSEVInfo: Pair<cmd.EmptyRequest, cmd.SEVInfoResponse>;
  readonly GetLaunchMeasurement: Pair<cmd.VMIRequest, cmd.LaunchMeasurementResponse>;
  readonly InjectLaunchSecret: Pair<cmd.InjectLaunchSecretRequest, cmd.Response>;
  readonly GetDomainDirtyRateStats: Pair<cmd.EmptyRequest, cmd.DirtyRateStatsResponse>;
  readonly GetScreenshot: Pair<cmd.VMIRequest, cmd.ScreenshotResponse>;
  readonly BackupVirtualMachine: Pair<cmd.BackupRequest, cmd.Response>;
  readonly RedefineCheckpoint: Pair<cmd.RedefineCheckpointRequest, cmd.RedefineCheckpointResponse>;
  readonly GetVMStats: Pair<cmd.VMStatsRequest, cmd.VMStatsResponse>;
}

/** Name of an RPC of the cmd service, as on the wire. */
export type CmdRpc = keyof CmdRpcTypes;
/** A whole request, as a server receives it. */
export type CmdRequest<R extends CmdRpc> = CmdRpcTypes[R]['request'];
/** A request as a caller writes it: what is left out is empty. */
export type CmdRequestInit<R extends CmdRpc> = DeepPartial<CmdRequest<R>>;
/** A whole response, as a client receives it. */
export type CmdResponse<R extends CmdRpc> = CmdRpcTypes[R]['response'];

/** How long KubeVirt's handler waits for an RPC: a fixed time, or what the request says plus a margin. */
export type RpcTimeout = { readonly ms: number } | { readonly marginMs: number };

/** What client and server know about an RPC beside its types. */
export interface CmdRpcInfo {
  /** The name that KubeVirt's handler uses for it in error texts. */
  readonly command: string;
  readonly timeout: RpcTimeout;
}

const SHORT: RpcTimeout = { ms: 5_000 };
const LONG: RpcTimeout = { ms: 20_000 };
const FREEZE: RpcTimeout = { ms: 60_000 };
const BY_REQUEST: RpcTimeout = { marginMs: 5_000 };

/**
 * Every RPC of the cmd service with its deadline and its name in error texts.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/cmd-client/client.go
 */
export const CMD_RPCS: { readonly [R in CmdRpc]: CmdRpcInfo } = {
  SyncVirtualMachine: { command: 'SyncVMI', timeout: LONG },
  PauseVirtualMachine: { command: 'Pause', timeout: LONG },
  UnpauseVirtualMachine: { command: 'Unpause', timeout: LONG },
  FreezeVirtualMachine: { command: 'Freeze', timeout: FREEZE },
  UnfreezeVirtualMachine: { command: 'Unfreeze', timeout: LONG },
  ResetVirtualMachine: { command: 'Reset', timeout: LONG },
  SoftRebootVirtualMachine: { command: 'SoftReboot', timeout: LONG },
  ShutdownVirtualMachine: { command: 'Shutdown', timeout: LONG },
  KillVirtualMachine: { command: 'Kill', timeout: LONG },
  DeleteVirtualMachine: { command: 'Delete', timeout: LONG },
  MigrateVirtualMachine: { command: 'Migrate', timeout: LONG },
  SyncMigrationTarget: { command: 'SyncMigrationTarget', timeout: LONG },
  CancelVirtualMachineMigration: { command: 'CancelMigration', timeout: LONG },
  SignalTargetPodCleanup: { command: 'SignalTargetPodCleanup', timeout: LONG },
  FinalizeVirtualMachineMigration: { command: 'FinalizeVirtualMachineMigration', timeout: LONG },
  HotplugHostDevices: { command: 'HotplugHostDevices', timeout: LONG },
  GetDomain: { command: 'GetDomain', timeout: SHORT },
  GetDomainStats: { command: 'GetDomainStats', timeout: SHORT },
  GetGuestInfo: { command: 'GetGuestInfo', timeout: SHORT },
  GetUsers: { command: 'GetUsers', timeout: SHORT },
  GetFilesystems: { command: 'GetFilesystems', timeout: SHORT },
  Ping: { command: 'Ping', timeout: SHORT },
  Exec: { command: 'Exec', timeout: BY_REQUEST },
  GuestPing: { command: 'GuestPing', timeout: BY_REQUEST },
  VirtualMachineMemoryDump: { command: 'Memorydump', timeout: LONG },
  GetQemuVersion: { command: 'GetQemuVersion', timeout: SHORT },
  SyncVirtualMachineCPUs: { command: 'SyncVirtualMachineCPUs', timeout: LONG },
  SyncVirtualMachineMemory: { command: 'SyncVirtualMachineMemory', timeout: LONG },
  GetSEVInfo: { command: 'GetSEVInfo', timeout: SHORT },
  GetLaunchMeasurement: { command: 'GetLaunchMeasurement', timeout: SHORT },
  InjectLaunchSecret: { command: 'InjectLaunchSecret', timeout: LONG },
  GetDomainDirtyRateStats: { command: 'GetDomainDirtyRateStats', timeout: LONG },
  GetScreenshot: { command: 'GetScreenshot', timeout: SHORT },
  BackupVirtualMachine: { command: 'Backup', timeout: LONG },
  RedefineCheckpoint: { command: 'RedefineCheckpoint', timeout: LONG },
  GetVMStats: { command: 'GetVMStats', timeout: SHORT },
};

/** Names of all RPCs of the cmd service. */
export const CMD_RPC_NAMES = Object.keys(CMD_RPCS) as readonly CmdRpc[];
