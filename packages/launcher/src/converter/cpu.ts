import type { Domain, DomainCPUFeature, Vmi } from '@virtwire/vm-model';
import { quantityValue } from '@virtwire/vm-model';

import type { ConverterContext } from './context.ts';
import type { GuestTopology } from './cpu-pool.ts';

const HOST_MODELS = new Set(['host-model', 'host-passthrough']);

/**
 * Sockets, cores and threads of the guest; without any, the CPU limit or request gives the sockets.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go, GetCPUTopology
 */
export function guestTopology(vmi: Vmi): GuestTopology {
  const { cpu, resources } = vmi.spec.domain;
  if (cpu?.cores || cpu?.sockets || cpu?.threads) {
    return { sockets: atLeastOne(cpu.sockets), cores: atLeastOne(cpu.cores), threads: atLeastOne(cpu.threads) };
  }
  const amount = resources?.limits?.['cpu'] ?? resources?.requests?.['cpu'];
  return { sockets: amount === undefined ? 1 : Number(quantityValue(amount)), cores: 1, threads: 1 };
}

function atLeastOne(count: number | undefined): number {
  return Math.max(1, count ?? 0);
}

/** vCPUs of a topology. */
export function vcpuCount({ sockets, cores, threads }: GuestTopology): number {
  return sockets * cores * threads;
}

/**
 * CPU model, topology, and the vCPUs that may be plugged in later.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/compute/cpu.go
 */
export function configureCpu(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const topology = guestTopology(vmi);
  const { cpu } = vmi.spec.domain;
  const { CPU } = domain.Spec;
  const maxSockets = context.arch.hasCpuHotplug ? (cpu?.maxSockets ?? 0) : 0;
  const sockets = maxSockets === 0 ? topology.sockets : maxSockets;
  CPU.Topology = { Sockets: sockets, Cores: topology.cores, Threads: topology.threads };
  domain.Spec.VCPU = { Placement: 'static', CPUs: vcpuCount({ ...topology, sockets }) };
  if (maxSockets !== 0) domain.Spec.VCPUs = { VCPU: hotpluggableVcpus(topology, maxSockets) };

  const { mode, model } = cpuModel(vmi, context);
  CPU.Mode = mode;
  CPU.Model = model;
  const features = cpuFeatures(vmi, context);
  if (features.length > 0) CPU.Features = features;
}

function hotpluggableVcpus(
  topology: GuestTopology,
  maxSockets: number,
): { ID: number; Enabled: string; Hotpluggable: string }[] {
  const enabled = vcpuCount(topology);
  const perSocket = topology.cores * topology.threads;
  return Array.from({ length: maxSockets * perSocket }, (_none, id) => ({
    ID: id,
    Enabled: id < enabled ? 'yes' : 'no',
    Hotpluggable: id >= perSocket ? 'yes' : 'no',
  }));
}

function cpuModel(vmi: Vmi, context: ConverterContext): { mode: string; model: string | undefined } {
  const model = vmi.spec.domain.cpu?.model ?? '';
  const isHostModel = model === '' || HOST_MODELS.has(model);
  if (context.isCrossArchitecture && isHostModel) return { mode: 'custom', model: 'max' };
  if (isHostModel) return { mode: model || 'host-model', model: undefined };
  return { mode: 'custom', model };
}

/** Named models of libvirt still carry MPX, which no current CPU has. */
function cpuFeatures(vmi: Vmi, context: ConverterContext): DomainCPUFeature[] {
  const { cpu } = vmi.spec.domain;
  if (cpu === undefined) return [];
  const features: DomainCPUFeature[] = (cpu.features ?? []).map(({ name, policy }) => ({ Name: name, Policy: policy }));
  const namesMpx = features.some(({ Name }) => Name === 'mpx');
  if (context.arch.disablesMpx && !namesMpx && !HOST_MODELS.has(cpu.model ?? '')) {
    features.push({ Name: 'mpx', Policy: 'disable' });
  }
  return features;
}
