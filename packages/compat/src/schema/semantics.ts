/** Buf's name of a rule, or the name of one of ours. */
export type SchemaRule =
  | 'FIELD_NEEDED'
  | 'FIELD_NO_DELETE'
  | 'FIELD_REUSED'
  | 'FIELD_SAME_ONEOF'
  | 'FIELD_WIRE_COMPATIBLE_CARDINALITY'
  | 'FIELD_WIRE_COMPATIBLE_TYPE'
  | 'JSON_KEY_RENAMED'
  | 'RPC_NO_DELETE'
  | 'RPC_SAME_STREAMING';

/** Why a field of a request must not go away, by message and field: what a peer of some releases does without it. */
export const NEEDED_FIELDS: Readonly<Record<string, string>> = {
  'VMIRequest.vmi': 'launchers crash on every request without it',
  'VMI.vmiJson': 'launchers refuse every request without it',
  'VMIRequest.options': 'launchers from v1.2 on crash on FinalizeVirtualMachineMigration without it',
  'MigrationRequest.vmi': 'launchers crash on every request without it',
  'MigrationRequest.options': 'launchers refuse to migrate without it',
  'FreezeRequest.vmi': 'launchers crash on every request without it',
  'MemoryDumpRequest.vmi': 'launchers crash on every request without it',
  'MemoryDumpRequest.dumpPath': 'launchers have no place to dump to',
  'ExecRequest.timeoutSeconds': 'launchers from v0.43 on crash on 0',
  'BackupRequest.vmi': 'launchers crash on every request without it',
  'BackupRequest.options': 'launchers refuse a backup without it',
  'InjectLaunchSecretRequest.options': 'launchers refuse a secret without it',
  'VirtualMachineOptions.DisksInfo': 'launchers up to v1.5 cannot start a VM with a container disk',
  'VirtualMachineOptions.ExpandDisksEnabled': 'disks of launchers up to v1.8 stop growing online',
  'VirtualMachineOptions.interfaceDomainAttachment': 'launchers from v1.1.1 on cannot start a VM with a network',
  'VirtualMachineOptions.topology': 'launchers cannot place CPUs and memory of a VM with guest NUMA',
  'Response.success': 'every answer reads as a failure',
  'CmdInfoResponse.supportedCmdVersions': 'handlers refuse to connect',
  'NotifyInfoResponse.supportedNotifyVersions': 'launchers refuse to connect',
  'DomainEventRequest.domainJSON': 'handlers are told of no domain',
  'DomainEventRequest.eventType': 'handlers drop every event',
};

/**
 * Message whose JSON, with the names of its proto fields as keys, travels in `status.migrationState.targetNodeTopology`
 * of the VMI: there a name counts as much as a number.
 */
export const JSON_CARRIED_ROOT = 'kubevirt.cmd.v1.Topology';
