import { renderBytes } from '@virtwire/vm-model';
import type { Domain } from '../model.ts';

const UNIT_BYTES: Readonly<Record<string, bigint>> = {
  b: 1n,
  bytes: 1n,
  KB: 1_000n,
  MB: 1_000_000n,
  GB: 1_000_000_000n,
  TB: 1_000_000_000_000n,
  k: 1n << 10n,
  KiB: 1n << 10n,
  M: 1n << 20n,
  MiB: 1n << 20n,
  G: 1n << 30n,
  GiB: 1n << 30n,
  T: 1n << 40n,
  TiB: 1n << 40n,
};

/**
 * The guest's current memory as an API quantity; undefined when the domain says none or its unit is not known.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateMemoryInfo)
 */
export function guestMemory(domain: Domain): string | undefined {
  const current = domain.Spec.CurrentMemory;
  const factor = UNIT_BYTES[current?.Unit ?? ''];
  return factor === undefined ? undefined : renderBytes(BigInt(current?.Value ?? 0) * factor);
}
