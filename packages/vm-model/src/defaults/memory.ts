import { canonicalQuantity, isZeroQuantity, parseQuantity, quantityValue, renderBytes } from '../quantity/quantity.ts';
import type { Quantity } from '../vmi/metadata.ts';
import type { VmiSpec } from '../vmi/vmi.ts';
import type { ClusterDefaults } from './cluster.ts';

const MIB_2 = 2n << 20n;
const GIB = 1n << 30n;

/** Guest memory out of the memory request, the limit or the huge page size. */
export function defaultGuestMemory(spec: VmiSpec): void {
  const memory = (spec.domain.memory ??= {});
  if (memory.guest !== undefined) return;
  const { limits, requests } = spec.domain.resources ?? {};
  const candidates = [requests?.['memory'], limits?.['memory']].filter((amount) => !isZeroQuantity(amount));
  const guest = candidates[0] ?? pageSize(memory.hugepages?.pageSize);
  if (guest !== undefined) memory.guest = canonicalQuantity(guest);
}

/** Room for memory to be plugged in later, where the machine can have it. */
export function reserveMemoryHotplug(spec: VmiSpec, cluster: ClusterDefaults): void {
  const memory = (spec.domain.memory ??= {});
  if (memory.maxGuest !== undefined || memory.guest === undefined) return;
  const guest = quantityValue(memory.guest);
  const maxGuest =
    cluster.maxGuest === undefined ? guest * BigInt(cluster.maxHotplugRatio) : quantityValue(cluster.maxGuest);
  const alignment = memory.hugepages?.pageSize === '1Gi' ? GIB : MIB_2;
  if (!canHotplugMemory(spec) || guest < GIB || guest > maxGuest) return;
  if (guest % alignment !== 0n || maxGuest % alignment !== 0n) return;
  memory.maxGuest = cluster.maxGuest === undefined ? renderBytes(maxGuest) : canonicalQuantity(cluster.maxGuest);
}

function canHotplugMemory(spec: VmiSpec): boolean {
  const { cpu, launchSecurity } = spec.domain;
  return (
    spec.architecture === 'amd64' &&
    cpu?.realtime === undefined &&
    cpu?.numa?.guestMappingPassthrough === undefined &&
    launchSecurity === undefined
  );
}

function pageSize(text: string | undefined): Quantity | undefined {
  return text !== undefined && parseQuantity(text) !== undefined ? text : undefined;
}
