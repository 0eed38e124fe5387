import type { DomainSpec } from '@virtwire/vm-model';

/** From this release on libvirt makes do without memory slots and adds the NUMA cell by itself: 10.0.0. */
const COMPLETES_ITSELF = 10_000_000n;
const KIB = 1024n;

/**
 * The domain with what an older libvirt (9.0 of Debian 12, for one) wants to be told for memory hotplug: a slot, and a
 * NUMA cell that holds the memory of now. Without them such a daemon refuses every VM that may grow, which is the
 * default from 1 GiB on.
 *
 * @param version libvirt's number of its release: major * 1,000,000 + minor * 1,000 + release.
 */
export function completeForLibvirt(spec: DomainSpec, version: bigint): DomainSpec {
  if (version >= COMPLETES_ITSELF || spec.MaxMemory === undefined || (spec.MaxMemory.Slots ?? 0) > 0) return spec;
  const kib = BigInt(spec.Memory.Value ?? 0) / KIB;
  const lastVcpu = (spec.VCPU?.CPUs ?? 1) - 1;
  const cells = [{ ID: '0', CPUs: `0-${String(lastVcpu)}`, Memory: kib, Unit: 'KiB' }];
  return {
    ...spec,
    MaxMemory: { ...spec.MaxMemory, Slots: 1 },
    CPU: { ...spec.CPU, NUMA: spec.CPU.NUMA ?? { Cells: cells } },
  };
}
