import type { Vmi } from '@virtwire/vm-model';
import type { CellResult } from '../../cell.ts';
import type { EmulatedLauncher } from '../../emulate/api.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { callsOf, checkPeace, pauseByUser, UNIMPLEMENTED, unpauseByUser } from './running.ts';

/** A handler that tries again and again makes more calls than this within the scenario. */
const MAX_CALLS = 20;

/** What the handler has told people about a failed synchronisation; undefined when it has told nothing. */
function complaint(scene: HandlerScene): string | undefined {
  const event = scene.handler.events.find(({ reason }) => reason === 'SyncFailed');
  if (event !== undefined) return `event SyncFailed: ${event.message}`;
  const condition = scene.vmi.status?.conditions?.find(({ type }) => type === 'Synchronized');
  return condition?.status === 'False' ? `condition Synchronized is False: ${condition.message}` : undefined;
}

function askForDump(vmi: Vmi): void {
  const name = 'dump';
  vmi.spec.volumes = [...(vmi.spec.volumes ?? []), { name, memoryDump: { claimName: 'dump', hotpluggable: true } }];
  const status = (vmi.status ??= {});
  status.volumeStatus = [
    ...(status.volumeStatus ?? []),
    {
      name,
      target: '',
      phase: 'MemoryDumpInProgress',
      hotplugVolume: { attachPodName: 'hp-1', attachPodUID: 'u1' },
      memoryDumpVolume: { claimName: 'dump', targetFileName: 'vm1-dump.memory.dump' },
    },
  ];
}

function annotate(scene: HandlerScene, text: string): void {
  scene.change((vmi) => {
    vmi.metadata.annotations = { ...vmi.metadata.annotations, 'kubevirt.io/test': text };
  });
}

async function syncCarries(scene: HandlerScene, launcher: EmulatedLauncher, text: string): Promise<void> {
  await scene.until(`a sync with ${text}`, () =>
    callsOf(launcher, 'SyncVirtualMachine').some((sync) => JSON.stringify(sync.request['vmi'] ?? '').includes(text)),
  );
}

/**
 * A launcher that lacks RPCs of a running VM: what needs them stays undone, and everything else goes on, without a
 * failure that people would have to look into (FM-1.5).
 */
export async function missingRpcs(scene: HandlerScene): Promise<CellResult> {
  const lack = ['GetGuestInfo', 'VirtualMachineMemoryDump'];
  const launcher = await scene.runVm({ faults: { lack } });
  launcher.connectAgent();
  await scene.until('condition AgentConnected', () => scene.hasCondition('AgentConnected'));
  await scene.until('a question for guest info', () => callsOf(launcher, 'GetGuestInfo').length > 0);
  scene.change(askForDump);
  await scene.until('a request for a dump', () => callsOf(launcher, 'VirtualMachineMemoryDump').length > 0);
  annotate(scene, 'after-the-dump');
  await syncCarries(scene, launcher, 'after-the-dump');
  await pauseByUser(scene);
  await scene.until('condition Paused', () => scene.hasCondition('Paused'));
  // No launcher lacks this one; the rule is about every RPC.
  lack.push('SyncVirtualMachine');
  annotate(scene, 'after-the-pause');
  await syncCarries(scene, launcher, 'after-the-pause');
  await unpauseByUser(scene);
  await scene.until('no condition Paused', () => !scene.hasCondition('Paused'));
  const told = complaint(scene);
  check(told === undefined, `an RPC that the launcher lacks was told as a failure: ${told ?? ''}`);
  for (const rpc of lack) {
    const calls = callsOf(launcher, rpc).filter(({ code }) => code === UNIMPLEMENTED).length;
    check(calls > 0 && calls <= MAX_CALLS, `${rpc} was called ${calls} times`);
  }
  check(scene.vmi.status?.phase === 'Running', 'the VMI left Running');
  checkPeace(launcher);
  return PASS;
}
