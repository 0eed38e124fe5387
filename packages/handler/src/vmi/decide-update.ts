import { replacePvcByHostDisk } from '@virtwire/vm-model';
import { errorText } from '../errors.ts';
import { phaseOf } from '../model.ts';
import type { Vmi } from '../model.ts';
import type { PassFacts } from './decide.ts';
import { hasSriovToPlug, isRouted, networksToStart, networksToUpdate } from './networks.ts';
import { NOT_INITIALIZED_RETRY_MS } from './phase.ts';
import type { Step } from './steps.ts';
import { syncOptions } from './sync-options.ts';

const NOT_READY_RETRY_MS = 1_000;
const READY_PHASES: ReadonlySet<string> = new Set(['Ready', 'MountedToPod']);
const HOTPLUG_DISKS = '/var/run/kubevirt/hotplug-disks';

function isHotplugVolumeExpected(vmi: Vmi): boolean {
  if ((vmi.spec.utilityVolumes ?? []).length > 0) return true;
  return (vmi.spec.volumes ?? []).some(
    (volume) =>
      volume.dataVolume?.hotpluggable === true ||
      volume.persistentVolumeClaim?.hotpluggable === true ||
      volume.memoryDump?.hotpluggable === true ||
      volume.containerDisk?.hotpluggable === true,
  );
}

/** True when every hot-plugged volume of the spec has reached the pod. */
function areHotplugVolumesReady(vmi: Vmi): boolean {
  if (!isHotplugVolumeExpected(vmi)) return true;
  const statuses = vmi.status?.volumeStatus ?? [];
  return (
    statuses.length > 0 &&
    statuses.every((status) => status.hotplugVolume === undefined || READY_PHASES.has(status.phase ?? ''))
  );
}

function isAttestationPending(vmi: Vmi): boolean {
  const sev = vmi.spec.domain.launchSecurity?.sev;
  return sev?.attestation !== undefined && (!sev.session || !sev.dhCert);
}

/** True when QEMU locks memory: for passed-through devices, real time, encryption, or on request. */
function needsLockedMemory({ spec }: Vmi): boolean {
  const { cpu, devices, launchSecurity, memory } = spec.domain;
  const hasVfio =
    (devices.gpus ?? []).length > 0 ||
    (devices.hostDevices ?? []).length > 0 ||
    (devices.interfaces ?? []).some((iface) => iface.sriov !== undefined);
  const isEncrypted = launchSecurity?.sev !== undefined || launchSecurity?.snp !== undefined;
  return hasVfio || cpu?.realtime !== undefined || isEncrypted || memory?.reservedOverhead?.memLock === 'Required';
}

/** @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1933-2030 */
function decideStart(vmi: Vmi, wireVmi: Vmi): Step[] {
  const steps: Step[] = [
    { kind: 'awaitContainerDisks' },
    { kind: 'mountContainerDisks' },
    { kind: 'mountHotplugVolumes' },
  ];
  if (!areHotplugVolumesReady(vmi)) {
    const reason = 'hot-plugged volumes are not ready';
    return [...steps, { kind: 'requeue', afterMs: NOT_READY_RETRY_MS, reason }, { kind: 'stop', reason }];
  }
  const networks = networksToStart(vmi);
  if (networks.length > 0) steps.push({ kind: 'setUpNetwork', networks });
  steps.push({ kind: 'prepareDevices', vmi: wireVmi });
  if (needsLockedMemory(vmi)) steps.push({ kind: 'adjustMemlock' });
  if (isAttestationPending(vmi)) {
    return [...steps, { kind: 'stop', reason: 'SEV attestation: session or certificate is missing' }];
  }
  return [...steps, { kind: 'runHook', point: 'PreVMStart' }];
}

/** @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:2030-2120 */
function decideRunning(vmi: Vmi): Step[] {
  const steps: Step[] = [];
  if (hasSriovToPlug(vmi)) steps.push({ kind: 'plugSriov' });
  steps.push({ kind: 'mountHotplugVolumes' });
  for (const volume of vmi.status?.volumeStatus ?? []) {
    if (volume.memoryDumpVolume === undefined || volume.phase !== 'MemoryDumpInProgress') continue;
    const file = volume.memoryDumpVolume.targetFileName ?? '';
    steps.push({ kind: 'dumpMemory', path: `${HOTPLUG_DISKS}/${volume.name}/${file}` });
  }
  steps.push({ kind: 'startDownwardMetrics' });
  const networks = networksToUpdate(vmi);
  if (networks.length > 0) steps.push({ kind: 'updateNetwork', networks });
  if (isRouted(vmi)) steps.push({ kind: 'advertiseRouter' });
  return steps;
}

function housekeeping({ vmi, domain }: PassFacts, isRunning: boolean): Step[] {
  const steps: Step[] = [];
  const cpu = vmi.spec.domain.cpu;
  if (cpu?.dedicatedCpuPlacement === true && cpu.isolateEmulatorThread === true) {
    steps.push({ kind: 'isolateEmulator', cpuSet: domain?.Spec.CPUTune?.EmulatorPin?.CPUSet });
  }
  if (cpu?.realtime !== undefined && !isRunning) steps.push({ kind: 'makeRealtime' });
  if (cpu?.dedicatedCpuPlacement === true && !isRunning) steps.push({ kind: 'affinePit' });
  return steps;
}

/**
 * Steps that bring a VM in line with its VMI: the first start, and every later sync.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1933-2262
 */
export function decideUpdate(facts: PassFacts): Step[] {
  const { observed: o, vmi, domain } = facts;
  const steps: Step[] = [];
  if (domain?.Status.Status === 'Paused' && domain.Status.Reason === 'IOError') {
    steps.push({ kind: 'checkIoErrorRetry' });
  }
  steps.push({ kind: 'trackLauncher' });
  if (o.launcher === 'not-initialized') {
    const reason = 'launcher client is not initialized';
    return [...steps, { kind: 'requeue', afterMs: NOT_INITIALIZED_RETRY_MS, reason }, { kind: 'stop', reason }];
  }
  if (o.launcher === 'unresponsive') {
    const message = 'Can not update a VirtualMachineInstance with unresponsive command server.';
    return [...steps, { kind: 'fail', code: 'LauncherUnreachable', message }];
  }
  steps.push({ kind: 'connectLauncher' });
  let wireVmi: Vmi;
  try {
    wireVmi = replacePvcByHostDisk(vmi);
  } catch (error) {
    return [...steps, { kind: 'fail', code: 'Invalid', message: errorText(error) }];
  }
  const isRunning = phaseOf(vmi) === 'Running';
  steps.push({ kind: 'openCgroup' }, ...(isRunning ? decideRunning(vmi) : decideStart(vmi, wireVmi)));
  if (steps.at(-1)?.kind === 'stop') return steps;
  steps.push({ kind: 'syncDomain', vmi: wireVmi, options: syncOptions(vmi, o.cluster) });
  if (domain === undefined) steps.push({ kind: 'reportDefined' });
  steps.push(...housekeeping(facts, isRunning));
  if (isRunning) steps.push({ kind: 'unmountHotplugVolumes' });
  steps.push({ kind: 'raiseCollected' });
  return steps;
}
