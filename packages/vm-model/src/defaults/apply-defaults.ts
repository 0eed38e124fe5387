import { canonicalQuantity } from '../quantity/quantity.ts';
import type { Vmi } from '../vmi/vmi.ts';
import { defaultArchitectureDevices } from './architecture.ts';
import type { ClusterDefaults } from './cluster.ts';
import { defaultCpuModel, defaultCpuTopology, defaultResources, reserveCpuHotplug } from './cpu.ts';
import { defaultDevices, defaultInterface, defaultVolumes } from './devices.ts';
import { defaultFeatures, requireHypervFeatures } from './features.ts';
import { defaultGuestMemory, reserveMemoryHotplug } from './memory.ts';

const PCI_TOPOLOGY_ANNOTATION = 'kubevirt.io/pci-topology-version';
const PCI_TOPOLOGY_VERSION = 'v3';
const PARITY_ANNOTATION = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';
const QGS_ANNOTATION = 'kubevirt.io/qgs-socket-path';
const NONROOT_USER = 107;

/**
 * Completes a VMI as KubeVirt's admission webhook does on create: what the user left open gets its default.
 * A node without Kubernetes applies it itself. Applying it twice changes nothing more.
 *
 * @param firmwareUuid for VMIs that name none; must stay the same over restarts.
 * @returns a copy; the input is not touched.
 * @throws {VmModelError} when the cluster forbids the default network.
 * @source KubeVirt v1.9.0 pkg/defaults/defaults.go, pkg/virt-api/webhooks/mutating-webhook/mutators/vmi-mutator.go
 */
export function applyVmiDefaults(vmi: Vmi, cluster: ClusterDefaults, firmwareUuid: string): Vmi {
  const result = structuredClone(vmi);
  const { spec } = result;
  canonicaliseQuantities(result);
  spec.domain.resources ??= {};
  spec.architecture =
    spec.architecture === undefined || spec.architecture === '' ? cluster.architecture : spec.architecture;
  spec.domain.machine = { ...spec.domain.machine };
  spec.domain.machine.type ||= cluster.machineTypes[spec.architecture] ?? 'q35';
  defaultResources(spec, cluster);
  defaultGuestMemory(spec);
  defaultCpuTopology(spec);
  defaultVolumes(spec);
  if (spec.evictionStrategy === undefined && cluster.evictionStrategy !== undefined) {
    spec.evictionStrategy = cluster.evictionStrategy;
  }
  defaultInterface(spec, cluster);
  defaultFeatures(spec);
  spec.domain.firmware = { ...spec.domain.firmware };
  spec.domain.firmware.uuid ||= firmwareUuid;
  defaultDevices(spec);
  requireHypervFeatures(spec);
  defaultArchitectureDevices(spec);
  defaultCpuModel(spec, cluster);
  completeStatus(result);
  if (spec.architecture !== 'arm64' && cluster.isLiveUpdate) {
    reserveCpuHotplug(spec, cluster);
    reserveMemoryHotplug(spec, cluster);
  }
  annotate(result, cluster);
  return result;
}

function completeStatus(vmi: Vmi): void {
  const status = (vmi.status ??= {});
  const { cpu, memory } = vmi.spec.domain;
  status.guestOSInfo ??= {};
  status.runtimeUser ??= NONROOT_USER;
  if (cpu !== undefined) {
    status.currentCPUTopology ??= {
      ...(cpu.cores ? { cores: cpu.cores } : {}),
      ...(cpu.sockets ? { sockets: cpu.sockets } : {}),
      ...(cpu.threads ? { threads: cpu.threads } : {}),
    };
  }
  if (memory?.guest !== undefined) {
    status.memory = { guestAtBoot: memory.guest, guestCurrent: memory.guest, guestRequested: memory.guest };
  }
}

function annotate(vmi: Vmi, cluster: ClusterDefaults): void {
  const { spec } = vmi;
  const added: Record<string, string> = {};
  const machine = spec.domain.machine?.type ?? '';
  const isPcie = spec.architecture !== 's390x' && (machine.includes('q35') || machine.startsWith('virt'));
  if (isPcie) added[PCI_TOPOLOGY_ANNOTATION] = PCI_TOPOLOGY_VERSION;
  if (spec.domain.cpu?.isolateEmulatorThread === true && cluster.hasEmulatorThreadParity) added[PARITY_ANNOTATION] = '';
  if (spec.domain.launchSecurity?.tdx !== undefined && cluster.qgsSocketPath !== '') {
    added[QGS_ANNOTATION] = cluster.qgsSocketPath;
  }
  if (Object.keys(added).length > 0) vmi.metadata.annotations = { ...added, ...vmi.metadata.annotations };
}

/** The API prints every amount in canonical form. */
function canonicaliseQuantities(vmi: Vmi): void {
  const { memory, resources } = vmi.spec.domain;
  for (const list of [resources?.requests, resources?.limits]) {
    for (const [name, amount] of Object.entries(list ?? {})) {
      if (list !== undefined) list[name] = canonicalQuantity(amount);
    }
  }
  if (memory?.guest !== undefined) memory.guest = canonicalQuantity(memory.guest);
  if (memory?.maxGuest !== undefined) memory.maxGuest = canonicalQuantity(memory.maxGuest);
  for (const volume of vmi.spec.volumes ?? []) {
    if (volume.emptyDisk !== undefined) volume.emptyDisk.capacity = canonicalQuantity(volume.emptyDisk.capacity);
    if (volume.hostDisk !== undefined) volume.hostDisk.capacity = canonicalQuantity(volume.hostDisk.capacity ?? 0);
  }
}
