import { renderBytes, renderQuantity } from '@virtwire/vm-model';
import type { Domain } from '../model.ts';

const NANO = 1_000_000_000n;
const DECIMAL_UNIT_BYTES: Readonly<Record<string, bigint>> = {
  KB: 1_000n,
  MB: 1_000_000n,
  GB: 1_000_000_000n,
  TB: 1_000_000_000_000n,
};
const UNIT_BYTES: Readonly<Record<string, bigint>> = {
  b: 1n,
  bytes: 1n,
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
  const unit = current?.Unit ?? '';
  const value = BigInt(current?.Value ?? 0);
  const decimal = DECIMAL_UNIT_BYTES[unit];
  if (decimal !== undefined) return renderQuantity({ nano: value * decimal * NANO, format: 'DecimalSI' });
  const factor = UNIT_BYTES[unit];
  return factor === undefined ? undefined : renderBytes(value * factor);
}
