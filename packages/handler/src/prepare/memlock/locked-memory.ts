import { quantityValue } from '@virtwire/vm-model';
import type { Vmi } from '../../model.ts';

const MI = 1n << 20n;
const GI = 1n << 30n;
const KILO = 1_000n;
/** Monitor, launcher, virtlogd, virtqemud and QEMU itself. */
const FIXED = (25n + 100n + 25n + 40n + 30n) * MI;
const PER_VCPU = 8n * MI;
const IO_THREAD = 8n * MI;
const GRAPHICS = 32n * MI;
const ARM64 = 128n * MI;
const VFIO = GI;
const EXEC_PROBE = 10n * MI;
const EXEC_PROBES = 100n * MI;
const DOWNWARD_METRICS = MI;
const SEV = 256n * MI;
const TPM = 53n * MI;
const DEDICATED = 100n * MI;
const PASST = 250n * MI;

/** Rounded up to thousands, as Go's ScaledValue(Kilo) gives it. */
function kilos(bytes: bigint): bigint {
  return (bytes + KILO - 1n) / KILO;
}

function vcpus({ spec }: Vmi): bigint {
  const { cpu, resources } = spec.domain;
  if (cpu === undefined) {
    const asked = quantityValue(resources?.limits?.['cpu'] ?? resources?.requests?.['cpu']);
    return asked === 0n ? 1n : asked;
  }
  return BigInt((cpu.sockets ?? 1) * (cpu.cores ?? 1) * (cpu.threads ?? 1));
}

/** Number of devices that are passed through to the guest. */
function vfioDevices({ spec }: Vmi): number {
  const { gpus = [], hostDevices = [], interfaces = [] } = spec.domain.devices;
  return gpus.length + hostDevices.length + interfaces.filter((iface) => iface.sriov !== undefined).length;
}

function isGuaranteed({ spec }: Vmi): boolean {
  const { requests = {}, limits = {} } = spec.domain.resources ?? {};
  const isSame = (name: string): boolean => {
    const limit = quantityValue(limits[name]);
    return limit !== 0n && limit === quantityValue(requests[name] ?? limits[name]);
  };
  return isSame('cpu') && isSame('memory');
}

function execProbes({ spec }: Vmi): bigint {
  const probes = [spec.livenessProbe, spec.readinessProbe] as readonly ({ exec?: object } | undefined)[];
  const count = BigInt(probes.filter((probe) => probe?.exec !== undefined).length);
  return count === 0n ? 0n : count * EXEC_PROBE + EXEC_PROBES;
}

function multiplied(bytes: bigint, ratio: string | undefined): bigint {
  if (ratio === undefined) return bytes;
  const addition = Math.trunc(Number(kilos(bytes)) * (Number(ratio) - 1));
  return Number.isFinite(addition) ? bytes + BigInt(addition) * KILO : bytes;
}

/**
 * Memory that a launcher's pod needs beside the guest's own.
 *
 * @param ratio `additionalGuestMemoryOverheadRatio` of the cluster.
 * @source KubeVirt v1.9.0 pkg/hypervisor/kvm/hypervisorbackend.go:56-180
 */
export function memoryOverhead(vmi: Vmi, ratio: string | undefined): bigint {
  const { domain, architecture, volumes = [] } = vmi.spec;
  const { devices, launchSecurity, cpu, memory, resources } = domain;
  let bytes = FIXED + vcpus(vmi) * PER_VCPU + IO_THREAD;
  bytes += (kilos(quantityValue(resources?.requests?.['memory'])) * KILO) / 512n;
  if (devices.autoattachGraphicsDevice !== false) bytes += GRAPHICS;
  if (architecture === 'arm64') bytes += ARM64;
  if (vfioDevices(vmi) > 0) bytes += VFIO;
  if (volumes.some((volume) => volume.downwardMetrics !== undefined)) bytes += DOWNWARD_METRICS;
  bytes += execProbes(vmi);
  if (launchSecurity?.sev !== undefined || launchSecurity?.snp !== undefined) bytes += SEV;
  if (devices.tpm !== undefined && devices.tpm.enabled !== false) bytes += TPM;
  if (cpu?.dedicatedCpuPlacement === true || isGuaranteed(vmi)) bytes += DEDICATED;
  bytes += quantityValue(memory?.reservedOverhead?.addedOverhead);
  const passt = (devices.interfaces ?? []).some((iface) => iface.passtBinding !== undefined);
  return multiplied(bytes, ratio) + (passt ? PASST : 0n);
}

/**
 * Memory that QEMU may lock for a VMI: the guest's, once for each passed-through device, plus the overhead.
 *
 * @source KubeVirt v1.9.0 pkg/hypervisor/kvm/runtime.go (AdjustResources)
 */
export function lockedMemoryBytes(vmi: Vmi, ratio: string | undefined): bigint {
  const { memory, resources } = vmi.spec.domain;
  const guest = quantityValue(memory?.maxGuest ?? resources?.requests?.['memory'] ?? memory?.guest);
  const base = kilos(guest) * KILO;
  const extraDevices = BigInt(Math.max(0, vfioDevices(vmi) - 1));
  return memoryOverhead(vmi, ratio) + base * (1n + extraDevices);
}
