import type { HandlerFacts } from '../facts/line-facts.ts';
import { GRPC } from '../transport/grpc-frames.ts';

/** Names of the RPCs in a handler's error texts. @source wire.md 4 */
const COMMAND_NAMES: Readonly<Record<string, string>> = {
  SyncVirtualMachine: 'SyncVMI',
  PauseVirtualMachine: 'Pause',
  UnpauseVirtualMachine: 'Unpause',
  FreezeVirtualMachine: 'Freeze',
  UnfreezeVirtualMachine: 'Unfreeze',
  ResetVirtualMachine: 'Reset',
  SoftRebootVirtualMachine: 'SoftReboot',
  ShutdownVirtualMachine: 'Shutdown',
  KillVirtualMachine: 'Kill',
  DeleteVirtualMachine: 'Delete',
  MigrateVirtualMachine: 'Migrate',
  CancelVirtualMachineMigration: 'CancelMigration',
  VirtualMachineMemoryDump: 'Memorydump',
  BackupVirtualMachine: 'Backup',
};

/** Calls whose failure does not matter when the launcher is gone. @source wire.md 4 */
const ENDINGS: readonly string[] = ['ShutdownVirtualMachine', 'KillVirtualMachine', 'DeleteVirtualMachine'];

const CODE_NAMES: readonly string[] = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
];

/** A handler's words for an answer with success=false. */
export function refusalText(rpc: string, message: string): string {
  return `server error. command ${COMMAND_NAMES[rpc] ?? rpc} failed: ${JSON.stringify(message)}`;
}

/**
 * A handler's words for a call that got no answer; undefined if it does not mind.
 *
 * @source wire.md 4; releases.json eras.unimplementedDetection, disconnectDetection
 */
export function statusText(facts: HandlerFacts, rpc: string, code: number, details: string): string | undefined {
  const text = `rpc error: code = ${CODE_NAMES[code] ?? String(code)} desc = ${details}`;
  if (code === GRPC.canceled) return ENDINGS.includes(rpc) ? undefined : text;
  if (code === GRPC.unimplemented && facts.unimplemented.value === 'passedThrough') return text;
  return `unknown error encountered sending command ${COMMAND_NAMES[rpc] ?? rpc}: ${text}`;
}
