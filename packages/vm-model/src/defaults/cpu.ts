import { canonicalQuantity, isZeroQuantity, parseQuantity, quantityValue } from '../quantity/quantity.ts';
import type { VmiSpec } from '../vmi/vmi.ts';
import type { ClusterDefaults } from './cluster.ts';

const BUILT_IN_CPU_REQUEST = '100m';
/** Upper bound for hot-pluggable vCPUs, since machine types differ in theirs. */
const MAX_VCPUS = 512;

/** A CPU request out of the limit, or the cluster's when it has one of its own. */
export function defaultResources(spec: VmiSpec, cluster: ClusterDefaults): void {
  const resources = (spec.domain.resources ??= {});
  const limit = resources.limits?.['cpu'];
  if (limit !== undefined && !isZeroQuantity(limit) && isZeroQuantity(resources.requests?.['cpu'])) {
    resources.requests = { ...resources.requests, cpu: limit };
  }
  const isBuiltIn = parseQuantity(cluster.cpuRequest)?.nano === parseQuantity(BUILT_IN_CPU_REQUEST)?.nano;
  if (isBuiltIn || resources.requests?.['cpu'] !== undefined) return;
  if (spec.domain.cpu?.dedicatedCpuPlacement === true) return;
  resources.requests = { ...resources.requests, cpu: canonicalQuantity(cluster.cpuRequest) };
}

/** Sockets out of the CPU limit or request when the VMI says nothing of its topology. */
export function defaultCpuTopology(spec: VmiSpec): void {
  const cpu = (spec.domain.cpu ??= {});
  if (cpu.cores || cpu.sockets || cpu.threads) return;
  const { limits, requests } = spec.domain.resources ?? {};
  const amount = limits?.['cpu'] ?? requests?.['cpu'];
  cpu.cores = 1;
  cpu.sockets = amount === undefined ? 1 : Number(quantityValue(amount));
  cpu.threads = 1;
}

/** The cluster's CPU model, else host-model, where none is named. */
export function defaultCpuModel(spec: VmiSpec, cluster: ClusterDefaults): void {
  const cpu = (spec.domain.cpu ??= {});
  cpu.model ||= cluster.cpuModel || 'host-model';
}

/** Room for vCPUs to be plugged in later. */
export function reserveCpuHotplug(spec: VmiSpec, cluster: ClusterDefaults): void {
  const cpu = (spec.domain.cpu ??= {});
  if (cpu.maxSockets) return;
  const sockets = cpu.sockets ?? 0;
  if (cluster.maxCpuSockets !== 0) {
    cpu.maxSockets = Math.max(cluster.maxCpuSockets, sockets);
    return;
  }
  const perSocket = (cpu.cores ?? 0) * (cpu.threads ?? 0);
  const wanted = sockets * cluster.maxHotplugRatio;
  const maxSockets = wanted * perSocket > MAX_VCPUS ? Math.max(Math.floor(MAX_VCPUS / perSocket), sockets) : wanted;
  if (maxSockets !== 0) cpu.maxSockets = maxSockets;
}
