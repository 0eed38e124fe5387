import { domainName, emptyDomain } from '@virtwire/vm-model';
import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { ConverterOptions } from '../converter/circumstances.ts';
import { guestTopology, vcpuCount } from '../converter/cpu.ts';
import { parseCpuSet } from '../converter/cpu-set.ts';
import { placeDedicatedCpus } from '../converter/dedicated-cpus.ts';
import { hasDedicatedCpus } from '../converter/vmi-traits.ts';
import { LauncherError, textOf } from '../errors.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import type { Mutex } from './mutex.ts';

/** What changing vCPUs needs. */
export interface CpuUpdaterDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getXml' | 'setVcpus' | 'pinVcpu' | 'pinEmulator'>;
  readonly mutex: Mutex;
  readonly parseSpec: (xml: string) => DomainSpec;
  /** CPUs of the launcher's cgroup. */
  readonly readPodCpuSet: () => Promise<readonly number[]>;
}

const LIVE_AND_CONFIG = 3;
const FAILURE = 'failed to update vCPUs: ';

/**
 * Gives a running guest the vCPUs that its VMI asks for, each on a CPU of its own where the VMI has dedicated ones.
 * How many of them are pinned is what the domain shows after the change, not what was asked for.
 *
 * @throws {LauncherError} `ConvertFailed` or `BadRequest` with KubeVirt's message.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, UpdateVCPUs
 */
export function updateCpus(
  { libvirt, mutex, parseSpec, readPodCpuSet }: CpuUpdaterDeps,
  vmi: Vmi,
  options: ConverterOptions | undefined,
  log: Logger,
): Promise<void> {
  return mutex.run(async () => {
    const domain = await prefixed(libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name)));
    await prefixed(libvirt.setVcpus(domain, vcpuCount(guestTopology(vmi)), LIVE_AND_CONFIG));
    if (!hasDedicatedCpus(vmi)) return;
    const podCpuSet = await readPodCpuSet().catch((caught: unknown) => {
      log.error({ reason: caught }, 'failed to read pod cpuset.');
      throw LauncherError.from(caught, 'ConvertFailed', 'failed to read pod cpuset: ');
    });
    await prefixed(pin(domain, podCpuSet));
  });

  async function pin(domain: DomainRef, podCpuSet: readonly number[]): Promise<void> {
    const Spec = parseSpec(await libvirt.getXml(domain, 0));
    try {
      placeDedicatedCpus(vmi, { circumstances: { podCpuSet, options } }, { ...emptyDomain(), Spec });
    } catch (caught) {
      log.error({ reason: textOf(caught) }, 'failed to format domain cputune.');
      throw caught;
    }
    for (const { VCPU = 0, CPUSet = '' } of Spec.CPUTune?.VCPUPin ?? []) {
      await libvirt.pinVcpu(domain, VCPU, parseCpuSet(CPUSet), LIVE_AND_CONFIG);
    }
    const emulator = Spec.CPUTune?.EmulatorPin?.CPUSet;
    if (emulator !== undefined) await libvirt.pinEmulator(domain, parseCpuSet(emulator), LIVE_AND_CONFIG);
  }
}

async function prefixed<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (caught) {
    throw LauncherError.from(caught, 'BadRequest', FAILURE);
  }
}
