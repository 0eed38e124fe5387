import type { CmdRpc } from '@virtwire/shared-proto';
import type { CellResult } from '../../cell.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, difference, PASS } from '../verdicts.ts';

/** RPCs that old launchers lack, and what a user sees then. @source KubeVirt wire.md 10.3 */
const EFFECTS: Readonly<Partial<Record<CmdRpc, string>>> = {
  GetQemuVersion: 'downward metrics say qemu-unknown',
  SyncVirtualMachineCPUs: 'the number of CPUs changes with the next start only',
  SyncVirtualMachineMemory: 'the size of the memory changes with the next start only',
  GetSEVInfo: 'SEV requests answer 500',
  GetLaunchMeasurement: 'SEV requests answer 500',
  InjectLaunchSecret: 'SEV requests answer 500',
  ResetVirtualMachine: 'reset answers 500',
  GetDomainDirtyRateStats: 'the dirty rate metric is missing',
  GetScreenshot: 'screenshots answer 500',
  BackupVirtualMachine: 'backups answer 400',
  RedefineCheckpoint: 'checkpoints answer 503',
  GetVMStats: 'statistics of that VM are missing',
};

/** RPCs that only ask. */
const QUERIES = [
  ...(['Ping', 'GetDomain', 'GetDomainStats', 'GetGuestInfo', 'GetUsers', 'GetFilesystems', 'GetQemuVersion'] as const),
  ...(['GetSEVInfo', 'GetDomainDirtyRateStats', 'GetVMStats'] as const),
] satisfies readonly CmdRpc[];

/** RPCs that act on a guest whose agent is connected. */
const REQUESTS = [
  ...(['FreezeVirtualMachine', 'UnfreezeVirtualMachine', 'SoftRebootVirtualMachine', 'ResetVirtualMachine'] as const),
] satisfies readonly CmdRpc[];

/**
 * Every question and request of the REST server and the metrics, by the library that they use: answered, or told apart
 * as one that the launcher is too old for.
 */
export async function requests(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm({ lifeCycle: { agentMs: 5 } });
  await scene.until('condition AgentConnected', () => scene.hasCondition('AgentConnected'));
  const client = await scene.connect();
  const missing: string[] = [];
  for (const rpc of [...QUERIES, ...REQUESTS]) {
    const isQuery = (QUERIES as readonly string[]).includes(rpc);
    const vm =
      rpc === 'FreezeVirtualMachine' ? { vmi: scene.request().vmi, unfreezeTimeoutSeconds: 60 } : scene.request();
    const answer = await client.call(rpc, isQuery ? {} : vm);
    if (answer.ok) continue;
    const { grpcCode, message } = answer.error;
    scene.note(`${rpc}: ${message}`);
    if (grpcCode === 12) {
      const effect = EFFECTS[rpc];
      check(effect !== undefined, `${rpc} is not implemented, and nobody says what follows from it`);
      missing.push(`no ${rpc}: ${effect}`);
    } else check(answer.error.code === 'Failed' || grpcCode === 2, `${rpc} failed: ${message}`);
  }
  const after = await client.ping();
  check(after.ok, 'the launcher does not answer any more');
  check(launcher.state.process === 'running', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
  return missing.length === 0 ? PASS : difference(missing.join('; '));
}
