import type { Domain, Vmi } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { Circumstances } from './circumstances.ts';
import { guestTopology, vcpuCount } from './cpu.ts';
import { CpuPool, type GuestTopology } from './cpu-pool.ts';
import { hasIoThreads, supplementalPoolSize } from './iothreads.ts';
import { mapNuma } from './numa.ts';
import { annotationOf, hasNumaPassthrough } from './vmi-traits.ts';

const PARITY_ANNOTATION = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';

/** What the placement reads of the pod and the node. */
export interface CpuPlacementContext {
  readonly circumstances: Pick<Circumstances, 'podCpuSet' | 'options'>;
}

/**
 * Pins vCPUs, IO threads and the emulator to the pod's exclusive CPUs.
 *
 * @throws {LauncherError} `ConvertFailed` when the CPUs do not suffice.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go, AdjustDomainForTopologyAndCPUSet
 */
export function placeDedicatedCpus(vmi: Vmi, context: CpuPlacementContext, domain: Domain): void {
  const { podCpuSet, options } = context.circumstances;
  const topology = options?.topology ?? { numaCells: [] };
  const requested = enabledTopology(domain);
  const isStrict = hasNumaPassthrough(vmi);
  const pool = new CpuPool(topology, podCpuSet, requested.threads, !isStrict);
  pinVcpus(pool, requested, podCpuSet.length, isStrict, domain);

  const features = (domain.Spec.Features ??= {});
  if (vmi.spec.architecture === 'amd64') features.KVM = { ...features.KVM, HintDedicated: { State: 'on' } };
  const poolSize = supplementalPoolSize(vmi);
  if (poolSize > 0) pinSupplementalPool(pool, poolSize, domain);
  const emulatorCpus = pinEmulator(vmi, pool, poolSize, domain);
  if (hasIoThreads(vmi) && poolSize === 0) pinIoThreads(vmi, podCpuSet, emulatorCpus, domain);
  if (vmi.spec.domain.cpu?.realtime !== undefined) features.PMU = { State: 'off' };
  if (isStrict) mapNuma(vmi, topology, domain.Spec);
}

/** The guest's topology without the sockets that wait to be plugged in. */
function enabledTopology(domain: Domain): GuestTopology {
  const { Sockets = 1, Cores = 1, Threads = 1 } = domain.Spec.CPU.Topology ?? {};
  const disabled = (domain.Spec.VCPUs?.VCPU ?? []).filter(({ Enabled }) => Enabled !== 'yes').length;
  return { sockets: Sockets - Math.floor(disabled / (Cores * Threads)), cores: Cores, threads: Threads };
}

function pinVcpus(pool: CpuPool, requested: GuestTopology, available: number, isStrict: boolean, domain: Domain): void {
  const cores = requested.cores * requested.sockets;
  const { hostCpus, missingCores } = pool.fitCores(cores);
  if (missingCores > 0) {
    const couldFit = isStrict && available >= cores * requested.threads;
    throw new LauncherError(
      'ConvertFailed',
      couldFit
        ? `could not fit ${String(missingCores)} core(s) without crossing numa cell boundaries for individual cores`
        : `not enough exclusive threads provided, could not fit ${String(missingCores)} core(s)`,
    );
  }
  domain.Spec.CPUTune = { VCPUPin: hostCpus.map((cpu, vcpu) => ({ VCPU: vcpu, CPUSet: String(cpu) })) };
}

/** Pinned before the emulator: these threads count towards its parity. */
function pinSupplementalPool(pool: CpuPool, size: number, domain: Domain): void {
  if (domain.Spec.IOThreads === undefined) throw new LauncherError('ConvertFailed', 'domain is missing IOThreads');
  for (let thread = 1; thread <= size; thread++) {
    const cpu = pool.takeThread();
    if (cpu === undefined) {
      const message = 'no CPU allocated for the iothread: no remaining unassigned threads';
      throw new LauncherError('ConvertFailed', message);
    }
    addIoThreadPin(domain, thread, String(cpu));
  }
}

function pinEmulator(vmi: Vmi, pool: CpuPool, poolSize: number, domain: Domain): string {
  if (vmi.spec.domain.cpu?.isolateEmulatorThread !== true) return '';
  const cpus = [takeEmulatorCpu(pool, 'no CPU')];
  const pinned = vcpuCount(guestTopology(vmi)) + poolSize;
  if (annotationOf(vmi, PARITY_ANNOTATION) !== undefined && pinned % 2 === 0) {
    cpus.push(takeEmulatorCpu(pool, 'no second CPU'));
  }
  const cpuSet = cpus.join(',');
  domain.Spec.CPUTune = { ...domain.Spec.CPUTune, EmulatorPin: { CPUSet: cpuSet } };
  return cpuSet;
}

function takeEmulatorCpu(pool: CpuPool, what: string): number {
  const cpu = pool.takeThread();
  if (cpu !== undefined) return cpu;
  const message = `${what} allocated for the emulation thread: no remaining unassigned threads`;
  throw new LauncherError('ConvertFailed', message);
}

function pinIoThreads(vmi: Vmi, podCpuSet: readonly number[], emulatorCpus: string, domain: Domain): void {
  const threads = domain.Spec.IOThreads?.IOThreads;
  if (threads === undefined) throw new LauncherError('ConvertFailed', 'domain is missing IOThreads');
  const vcpus = vcpuCount(guestTopology(vmi));
  if (vmi.spec.domain.cpu?.isolateEmulatorThread === true) {
    addIoThreadPin(domain, 1, emulatorCpus);
  } else if (threads >= vcpus) {
    for (let thread = 1; thread <= threads; thread++) {
      addIoThreadPin(domain, thread, String(podCpuSet[thread % vcpus] ?? ''));
    }
  } else {
    let start = 0;
    for (let thread = 1; thread <= threads; thread++) {
      const size = Math.floor(vcpus / threads) + (thread <= vcpus % threads ? 1 : 0);
      addIoThreadPin(domain, thread, podCpuSet.slice(start, start + size).join(','));
      start += size;
    }
  }
}

function addIoThreadPin(domain: Domain, thread: number, cpuSet: string): void {
  const tune = (domain.Spec.CPUTune ??= {});
  tune.IOThreadPin = [...(tune.IOThreadPin ?? []), { IOThread: thread, CPUSet: cpuSet }];
}
