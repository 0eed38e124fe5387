import type { CmdHandlers, cmdV1 } from '@virtwire/shared-proto';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { CheckpointDeps } from '../backup/checkpoints.ts';
import { parseCheckpoint, redefineCheckpoint } from '../backup/checkpoints.ts';
import type { BackupManager } from '../backup/manager.ts';
import { parseBackupRequest } from '../backup/request.ts';
import { LauncherError, textOf } from '../errors.ts';
import { vmiRpc } from './vmi-rpc.ts';

/** What the methods need. */
export interface BackupRpcDeps {
  readonly backups: BackupManager;
  readonly checkpoints: CheckpointDeps;
  readonly log: Logger;
}

const isTracking = ({ status }: Vmi): boolean => status?.changedBlockTracking?.state === 'Enabled';

/** Failures of these methods have libvirt's errors in the form of Go's binding, not in that of the other methods. */
async function inPlainWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    throw caught instanceof LauncherError ? caught : LauncherError.from(caught, 'BadRequest', '');
  }
}

async function runBackup(backups: BackupManager, vmi: Vmi, log: Logger, options: Uint8Array): Promise<void> {
  if (!isTracking(vmi)) {
    throw new LauncherError('BadRequest', 'Backup failed ChangedBlockTracking is not enabled');
  }
  const command = parseBackupRequest(options);
  switch (command.kind) {
    case 'start':
      return backups.start(vmi, command, log);
    case 'abort':
      return backups.abort(vmi, command, log);
    case 'export':
      return backups.export(command, log);
  }
}

interface RedefineAnswer {
  readonly response?: { readonly success: boolean; readonly message: string };
  readonly checkpointInvalid?: true;
}

async function redefine(
  deps: CheckpointDeps,
  vmi: Vmi,
  log: Logger,
  { checkpoint: bytes }: cmdV1.RedefineCheckpointRequest,
): Promise<RedefineAnswer> {
  if (!isTracking(vmi)) {
    throw new LauncherError('BadRequest', 'Redefine checkpoint failed: ChangedBlockTracking is not enabled');
  }
  const checkpoint = parseCheckpoint(bytes);
  const refuse = (message: string, isInvalid: boolean): RedefineAnswer => {
    log.error({ reason: message }, `Failed to redefine checkpoint ${checkpoint.name}`);
    return { response: { success: false, message }, ...(isInvalid ? { checkpointInvalid: true } : {}) };
  };
  try {
    const refusal = await redefineCheckpoint(deps, vmi, checkpoint, log);
    if (refusal !== undefined) return refuse(refusal.message, refusal.isInvalid);
  } catch (caught) {
    return refuse(textOf(caught), false);
  }
  log.info(`Checkpoint ${checkpoint.name} redefined successfully`);
  return {};
}

/** Methods about backups of disks. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go` */
export function backupHandlers({ backups, checkpoints, log }: BackupRpcDeps) {
  return {
    backupVirtualMachine: vmiRpc<cmdV1.BackupRequest>(
      log,
      { success: 'VMI backup job initiated', failure: 'Failed to run backup job' },
      (vmi, vmiLog, { options }) => inPlainWords(() => runBackup(backups, vmi, vmiLog, options)),
    ),
    redefineCheckpoint: vmiRpc<cmdV1.RedefineCheckpointRequest, RedefineAnswer>(
      log,
      { failure: 'Failed to redefine checkpoint' },
      (vmi, vmiLog, request) => inPlainWords(() => redefine(checkpoints, vmi, vmiLog, request)),
    ),
  } satisfies CmdHandlers;
}
