import { CMD_RPC_NAMES } from '@virtwire/shared-proto';
import type { CallResult, CmdClient, CmdRpc } from '@virtwire/shared-proto';
import { RPC_RULES } from '@virtwire/shared-proto/compat-rules';
import { domainName } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { CellResult } from '../../cell.ts';
import type { EmulatedLauncher } from '../../emulate/api.ts';
import { factsOf } from '../../emulate/lines/lines.ts';
import { openReleaseSchema } from '../../emulate/schema/release-schema.ts';
import { VM } from '../../matrix/test-vmi.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, difference, PASS } from '../verdicts.ts';
import { callsOf, UNIMPLEMENTED } from './running.ts';

/** RPCs that have scenarios of their own, or would end the VM. */
const ELSEWHERE: readonly CmdRpc[] = [
  ...(['SyncVirtualMachine', 'PauseVirtualMachine', 'UnpauseVirtualMachine', 'ShutdownVirtualMachine'] as const),
  ...(['KillVirtualMachine', 'DeleteVirtualMachine', 'MigrateVirtualMachine', 'SyncMigrationTarget'] as const),
  ...(['SignalTargetPodCleanup', 'FinalizeVirtualMachineMigration'] as const),
];

/** RPCs whose failure is the answer: no encryption, no changed block tracking, no migration that could be cancelled. */
const REFUSED: readonly CmdRpc[] = [
  ...(['GetSEVInfo', 'GetLaunchMeasurement', 'InjectLaunchSecret', 'BackupVirtualMachine'] as const),
  ...(['RedefineCheckpoint', 'CancelVirtualMachineMigration'] as const),
];

/** gRPC's code of failures that travel as an error. */
const UNKNOWN = 2;

/** A VM that may grow while it runs. */
function letGrow({ spec }: Vmi): void {
  spec.domain.cpu = { ...spec.domain.cpu, maxSockets: 4 };
  spec.domain.memory = { ...spec.domain.memory, maxGuest: '128Mi' };
}

type Ask = (client: CmdClient, scene: HandlerScene) => Promise<CallResult<unknown>>;

/** Requests that hold more than the VMI. */
const SPECIAL: Readonly<Partial<Record<CmdRpc, Ask>>> = {
  FreezeVirtualMachine: (client, scene) =>
    client.freezeVirtualMachine({ vmi: scene.request().vmi, unfreezeTimeoutSeconds: 60 }),
  VirtualMachineMemoryDump: (client, scene) =>
    client.virtualMachineMemoryDump({ vmi: scene.request().vmi, dumpPath: '/var/run/kubevirt/dump/vm1.memory.dump' }),
  BackupVirtualMachine: (client, scene) =>
    client.backupVirtualMachine({ vmi: scene.request().vmi, options: Buffer.from('{"cmd":"Start"}') }),
  RedefineCheckpoint: (client, scene) =>
    client.redefineCheckpoint({ vmi: scene.request().vmi, checkpoint: Buffer.from('{"name":"c1"}') }),
  InjectLaunchSecret: (client, scene) =>
    client.injectLaunchSecret({ vmi: scene.request().vmi, options: Buffer.from('{"header":"aA==","secret":"aA=="}') }),
  Exec: (client) => client.exec({ domainName: domainName(VM.namespace, VM.name), Command: 'true', timeoutSeconds: 1 }),
  GetVMStats: (client) => client.getVMStats({ domainStats: {}, dirtyRate: {}, guestGetTime: {} }),
  GuestPing: (client) => client.guestPing({ domainName: domainName(VM.namespace, VM.name), timeoutSeconds: 1 }),
};

async function ask(client: CmdClient, rpc: CmdRpc, scene: HandlerScene): Promise<CallResult<unknown>> {
  const special = SPECIAL[rpc];
  if (special !== undefined) return special(client, scene);
  const asks = rpc === 'Ping' || rpc.startsWith('Get');
  const needsVmi = rpc === 'GetLaunchMeasurement' || rpc === 'GetScreenshot';
  return client.call(rpc, asks && !needsVmi ? {} : scene.request());
}

/** What a user notices of an RPC that the launcher really lacks. @throws {CompatError} when its release has the RPC. */
function effectOf(scene: HandlerScene, rpc: CmdRpc): string {
  const has = openReleaseSchema(factsOf(scene.line).release.value).cmdRpcs.has(rpc);
  check(!has, `${rpc} was taken for not implemented, and the launcher has it`);
  const rule = RPC_RULES.find((candidate) => candidate.rpc === rpc);
  check(rule !== undefined, `${rpc} is not implemented, and no rule says what follows from it`);
  return `no ${rpc}: ${rule.effect}`;
}

/** What crashes a Go launcher never arrives, and every deadline does. */
function checkArrival(launcher: EmulatedLauncher, rpc: CmdRpc): void {
  const call = callsOf(launcher, rpc).at(-1);
  check(call !== undefined, `${rpc} did not arrive`);
  check(call.timeoutMs !== undefined, `${rpc} came without a deadline`);
}

/** What a careless caller leaves out would end a launcher written in Go: the library puts it in. */
async function sendIncomplete(client: CmdClient, scene: HandlerScene): Promise<void> {
  const paused = await client.pauseVirtualMachine({});
  check(!paused.ok && paused.error.code === 'Failed', 'a pause without a VMI was not refused by the launcher');
  await client.finalizeVirtualMachineMigration({ vmi: scene.request().vmi });
}

/**
 * Every question and request of the REST server, the metrics and the probes, by the library that they use: answered, or
 * told apart as one that the launcher is too old for.
 */
export async function requests(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm({ lifeCycle: { agentMs: 5 }, collectsStats: true }, letGrow);
  await scene.until('condition AgentConnected', () => scene.hasCondition('AgentConnected'));
  const client = await scene.connect();
  const missing: string[] = [];
  for (const rpc of CMD_RPC_NAMES.filter((name) => !ELSEWHERE.includes(name))) {
    const answer = await ask(client, rpc, scene);
    checkArrival(launcher, rpc);
    if (answer.ok) continue;
    const { grpcCode, message } = answer.error;
    scene.note(`${rpc}: ${message}`);
    if (grpcCode === UNIMPLEMENTED) {
      check(answer.error.code === 'Unimplemented', `${rpc} that is not implemented failed with ${answer.error.code}`);
      missing.push(effectOf(scene, rpc));
      continue;
    }
    const isTold = answer.error.code === 'Failed' || grpcCode === UNKNOWN;
    check(isTold && REFUSED.includes(rpc), `${rpc} failed: ${message}`);
  }
  await sendIncomplete(client, scene);
  const after = await client.ping();
  check(after.ok, 'the launcher does not answer any more');
  check(launcher.state.process === 'running', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
  return missing.length === 0 ? PASS : difference(missing.join('; '));
}
