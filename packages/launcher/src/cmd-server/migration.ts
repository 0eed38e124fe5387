import type { CmdHandlers, cmdV1 } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import type { DomainWriter } from '../domain/wire-domain.ts';
import type { MigrationParts } from '../migration/parts.ts';
import type { Plugins } from '../hooks/plugins.ts';
import { readMigrationSettings } from '../migration/settings.ts';
import { completeOptions } from './complete-options.ts';
import { pluginsText } from './lifecycle.ts';
import { vmiRpc } from './vmi-rpc.ts';

/** What the methods need. */
export interface MigrationRpcDeps {
  readonly migration: MigrationParts;
  readonly log: Logger;
  readonly writer: Pick<DomainWriter, 'noteOptions'>;
  readonly plugins: Pick<Plugins, 'set'>;
}

/** Methods that bring the VM to another node. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go` */
export function migrationHandlers({ migration, log, writer, plugins }: MigrationRpcDeps) {
  return {
    migrateVirtualMachine: vmiRpc<cmdV1.MigrationRequest>(
      log,
      { success: 'Signaled vmi migration', failure: 'Failed to migrate vmi' },
      async (vmi, vmiLog, { options }) => {
        migration.source.migrate(vmi, readMigrationSettings(options), vmiLog);
      },
    ),
    cancelVirtualMachineMigration: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Live migration has been aborted', failure: 'Failed to abort live migration' },
      async (vmi, vmiLog) => {
        migration.source.cancel(vmi, vmiLog);
      },
    ),
    syncMigrationTarget: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Prepared migration target pod', failure: 'Failed to prepare migration target pod' },
      async (vmi, vmiLog, { options }, context) => {
        plugins.set(pluginsText(options));
        if (options !== undefined) writer.noteOptions(options, context?.userAgent);
        await migration.target.prepare(vmi, options === undefined ? undefined : completeOptions(vmi, options), vmiLog);
      },
    ),
    finalizeVirtualMachineMigration: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'migration finalized successfully', failure: 'failed to finalize migration' },
      (vmi, _vmiLog, { options }) => migration.finalize(vmi, options?.interfaceMigration ?? new Map()),
    ),
  } satisfies CmdHandlers;
}
