import type { CmdHandlers } from '@virtwire/shared-proto';
import { LauncherError } from '../errors.ts';

/** RPCs that this launcher does not carry out yet, and what is missing for each. */
const MISSING = {
  freezeVirtualMachine: 'freezing file systems',
  unfreezeVirtualMachine: 'thawing file systems',
  resetVirtualMachine: 'resetting the VM',
  softRebootVirtualMachine: 'rebooting the guest',
  migrateVirtualMachine: 'live migration (source side)',
  syncMigrationTarget: 'live migration (target side)',
  cancelVirtualMachineMigration: 'cancelling a live migration',
  finalizeVirtualMachineMigration: 'finalizing a live migration',
  hotplugHostDevices: 'plugging in host devices',
  exec: 'running commands in the guest',
  virtualMachineMemoryDump: 'dumping memory',
  syncVirtualMachineCPUs: 'changing the number of CPUs',
  syncVirtualMachineMemory: 'changing the size of the memory',
  getSEVInfo: 'reading SEV information',
  getLaunchMeasurement: 'reading the SEV launch measurement',
  injectLaunchSecret: 'injecting a SEV launch secret',
  getDomainDirtyRateStats: 'measuring the dirty rate',
  getScreenshot: 'taking a screenshot',
  backupVirtualMachine: 'backups',
  redefineCheckpoint: 'checkpoints',
} as const;

/**
 * Methods that say what is missing instead of pretending.
 *
 * GetVMStats answers as a launcher without the feature, which handlers know how to take.
 */
export function unsupportedHandlers(isVmStatsCollectorOn: boolean): CmdHandlers {
  const refuse = (text: string) => () => {
    throw new LauncherError('NotSupportedYet', text);
  };
  const refusals = Object.entries(MISSING).map(([rpc, what]) => [
    rpc,
    refuse(`${what} is not supported by this launcher yet`),
  ]);
  const getVMStats = refuse(
    isVmStatsCollectorOn
      ? 'collecting VM statistics is not supported by this launcher yet'
      : 'VMStatsCollector feature gate is not enabled',
  );
  return { ...(Object.fromEntries(refusals) as CmdHandlers), getVMStats };
}
