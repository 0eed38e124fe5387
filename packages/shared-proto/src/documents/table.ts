import type { EmbeddedField } from '@virtwire/vm-model/payloads';

import type { CmdRpc } from '../cmd/rpcs.ts';

/**
 * Where a message holds documents: a field that is one, a message that holds nothing but one (`VMI`), or a message with
 * documents further down.
 */
export interface DocumentTree {
  readonly [field: string]: EmbeddedField | 'VMI' | DocumentTree;
}

/** Documents of an RPC's request and of its response. */
export interface RpcDocuments {
  readonly request: DocumentTree;
  readonly response: DocumentTree;
}

const NONE = {} as const;
const VMI = { vmi: 'VMI' } as const;
const VMI_REQUEST = { vmi: 'VMI', options: { pluginsJson: 'VirtualMachineOptions.pluginsJson' } } as const;
const STATS = { domainStats: 'DomainStatsResponse.domainStats' } as const;
const ACT = { request: VMI_REQUEST, response: NONE } as const;
const PLAIN = { request: NONE, response: NONE } as const;

/** The documents of every RPC of the cmd service. */
export const CMD_DOCUMENTS = {
  SyncVirtualMachine: ACT,
  PauseVirtualMachine: ACT,
  UnpauseVirtualMachine: ACT,
  FreezeVirtualMachine: { request: VMI, response: NONE },
  UnfreezeVirtualMachine: ACT,
  ResetVirtualMachine: ACT,
  SoftRebootVirtualMachine: ACT,
  ShutdownVirtualMachine: ACT,
  KillVirtualMachine: ACT,
  DeleteVirtualMachine: ACT,
  MigrateVirtualMachine: { request: { ...VMI, options: 'MigrationRequest.options' }, response: NONE },
  SyncMigrationTarget: ACT,
  CancelVirtualMachineMigration: ACT,
  SignalTargetPodCleanup: ACT,
  FinalizeVirtualMachineMigration: ACT,
  HotplugHostDevices: ACT,
  GetDomain: { request: NONE, response: { domain: 'DomainResponse.domain' } },
  GetDomainStats: { request: NONE, response: STATS },
  GetGuestInfo: { request: NONE, response: { guestInfoResponse: 'GuestInfoResponse.guestInfoResponse' } },
  GetUsers: { request: NONE, response: { guestUserListResponse: 'GuestUserListResponse.guestUserListResponse' } },
  GetFilesystems: {
    request: NONE,
    response: { guestFilesystemsResponse: 'GuestFilesystemsResponse.guestFilesystemsResponse' },
  },
  Ping: PLAIN,
  Exec: PLAIN,
  GuestPing: PLAIN,
  VirtualMachineMemoryDump: { request: VMI, response: NONE },
  GetQemuVersion: PLAIN,
  SyncVirtualMachineCPUs: ACT,
  SyncVirtualMachineMemory: ACT,
  GetSEVInfo: { request: NONE, response: { sevInfo: 'SEVInfoResponse.sevInfo' } },
  GetLaunchMeasurement: {
    request: VMI_REQUEST,
    response: { launchMeasurement: 'LaunchMeasurementResponse.launchMeasurement' },
  },
  InjectLaunchSecret: { request: { ...VMI, options: 'InjectLaunchSecretRequest.options' }, response: NONE },
  GetDomainDirtyRateStats: PLAIN,
  GetScreenshot: ACT,
  BackupVirtualMachine: { request: { ...VMI, options: 'BackupRequest.options' }, response: NONE },
  RedefineCheckpoint: { request: { ...VMI, checkpoint: 'RedefineCheckpointRequest.checkpoint' }, response: NONE },
  GetVMStats: { request: NONE, response: { domainStats: STATS } },
} as const satisfies Readonly<Record<CmdRpc, RpcDocuments>>;

/** The documents of the messages that a launcher sends to the notify service. */
export const NOTIFY_DOCUMENTS = {
  DomainEventRequest: {
    domainJSON: 'DomainEventRequest.domainJSON',
    statusJSON: 'DomainEventRequest.statusJSON',
  },
  K8sEventRequest: { eventJSON: 'K8sEventRequest.eventJSON' },
} as const satisfies Readonly<Record<string, DocumentTree>>;
