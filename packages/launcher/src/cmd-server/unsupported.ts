import type { CmdHandlers } from '@virtwire/shared-proto';
import { LauncherError } from '../errors.ts';

/** RPCs that this launcher does not carry out yet, and what is missing for each. */
const MISSING = {
  migrateVirtualMachine: 'live migration (source side)',
  syncMigrationTarget: 'live migration (target side)',
  cancelVirtualMachineMigration: 'cancelling a live migration',
  finalizeVirtualMachineMigration: 'finalizing a live migration',
  hotplugHostDevices: 'plugging in host devices',
  syncVirtualMachineCPUs: 'changing the number of CPUs',
  syncVirtualMachineMemory: 'changing the size of the memory',
} as const;

/** Methods that say what is missing instead of pretending. */
export function unsupportedHandlers(): CmdHandlers {
  const refusals = Object.entries(MISSING).map(([rpc, what]) => [
    rpc,
    () => {
      throw new LauncherError('NotSupportedYet', `${what} is not supported by this launcher yet`);
    },
  ]);
  return Object.fromEntries(refusals) as CmdHandlers;
}
