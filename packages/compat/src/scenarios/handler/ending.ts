import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CellResult } from '../../cell.ts';
import type { EmulatedLauncher } from '../../emulate/api.ts';
import { apiNow, POD_UID, VM_KEY } from '../../matrix/test-vmi.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { callsOf, checkPeace, pauseByUser, unpauseByUser } from './running.ts';

function requestDeletion(scene: HandlerScene): void {
  scene.change((vmi) => {
    vmi.metadata.deletionTimestamp = apiNow();
    vmi.metadata.finalizers = ['foregroundDeleteVirtualMachine'];
  });
}

async function checkCleanEnd(scene: HandlerScene, launcher: EmulatedLauncher): Promise<void> {
  await scene.until('DeleteVirtualMachine', () => callsOf(launcher, 'DeleteVirtualMachine').length > 0);
  const ping = launcher.calls.find(({ rpc }) => rpc === 'Ping');
  check(ping !== undefined, 'the launcher was not pinged before it was told to end');
  check(launcher.state.process !== 'crashed', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
  // The controller removes the pod and then the VMI.
  launcher.terminate();
  await launcher[Symbol.asyncDispose]();
  rmSync(join(scene.dirs.podsDir, POD_UID), { recursive: true, force: true });
  scene.store.remove(VM_KEY);
}

/** Deletion with a guest that shuts down. */
export async function gracefulStop(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm({ lifeCycle: { shutdownMs: 60 } });
  requestDeletion(scene);
  await scene.until('ShutdownVirtualMachine', () => callsOf(launcher, 'ShutdownVirtualMachine').length > 0);
  await scene.untilPhase('Succeeded');
  check(callsOf(launcher, 'KillVirtualMachine').length === 0, 'the VM was killed');
  await checkCleanEnd(scene, launcher);
  return PASS;
}

/** Deletion with a guest that does not listen. */
export async function kill(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm({ lifeCycle: { shutdownMs: 'never' } }, (vmi) => {
    vmi.spec.terminationGracePeriodSeconds = 1;
  });
  requestDeletion(scene);
  await scene.until('KillVirtualMachine', () => callsOf(launcher, 'KillVirtualMachine').length > 0);
  check(callsOf(launcher, 'ShutdownVirtualMachine').length > 0, 'the guest was not asked first');
  await scene.untilPhase('Failed');
  await checkCleanEnd(scene, launcher);
  return PASS;
}

/** A domain that says in so many words that it is not marked, where launchers print nothing or null. */
function sayUnmarked(domainJson: string): string {
  if (domainJson === '') return domainJson;
  const domain = JSON.parse(domainJson) as {
    Spec: { Metadata: { KubeVirt: { GracePeriod?: Record<string, unknown> } } };
  };
  const { KubeVirt } = domain.Spec.Metadata;
  KubeVirt.GracePeriod = { ...KubeVirt.GracePeriod };
  KubeVirt.GracePeriod['MarkedForGracefulShutdown'] ??= false;
  return JSON.stringify(domain);
}

/** The pod is ended under a VMI that nobody deletes: its launcher marks the domain, and the guest is asked to go. */
export async function podEnd(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm({ lifeCycle: { shutdownMs: 60 }, tamper: { domain: sayUnmarked } });
  await pauseByUser(scene);
  await scene.until('condition Paused', () => scene.hasCondition('Paused'));
  await unpauseByUser(scene);
  await scene.until('no condition Paused', () => !scene.hasCondition('Paused'));
  check(callsOf(launcher, 'ShutdownVirtualMachine').length === 0, 'a VM was shut down that is not marked for it');
  checkPeace(launcher);
  launcher.terminate();
  await scene.until('ShutdownVirtualMachine', () => callsOf(launcher, 'ShutdownVirtualMachine').length > 0);
  await scene.untilPhase('Succeeded');
  check(callsOf(launcher, 'KillVirtualMachine').length === 0, 'the VM was killed');
  await checkCleanEnd(scene, launcher);
  return PASS;
}
