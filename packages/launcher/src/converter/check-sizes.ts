import type { Vmi } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { guestTopology, vcpuCount } from './cpu.ts';
import { supplementalPoolSize } from './iothreads.ts';

/** More than any hypervisor has; each vCPU is an object of the domain. */
const MAX_VCPUS = 16_384;
/** IO threads times the disks that they serve. */
const MAX_THREAD_ENTRIES = 1 << 20;

/**
 * Refuses counts that no machine has before a domain is made of them: it would not fit into memory.
 *
 * @throws {LauncherError} `ConvertFailed`.
 */
export function checkSizes(vmi: Vmi): void {
  const topology = guestTopology(vmi);
  const { maxSockets = 0 } = vmi.spec.domain.cpu ?? {};
  const vcpus = vcpuCount({ ...topology, sockets: Math.max(topology.sockets, maxSockets) });
  if (vcpus > MAX_VCPUS) {
    throw new LauncherError('ConvertFailed', `${String(vcpus)} vCPUs are more than the ${String(MAX_VCPUS)} possible`);
  }
  const disks = vmi.spec.domain.devices.disks?.length ?? 0;
  const threads = supplementalPoolSize(vmi);
  if (threads * Math.max(1, disks) > MAX_THREAD_ENTRIES) {
    throw new LauncherError('ConvertFailed', `${String(threads)} IO threads for ${String(disks)} disks are too many`);
  }
}
