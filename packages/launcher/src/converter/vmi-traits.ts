import type { DiskBus, Vmi, VmiDisk } from '@virtwire/vm-model';

import type { Confidentiality } from './efi.ts';

const NONROOT_ANNOTATION = 'kubevirt.io/nonroot';

/** An annotation of a VMI. */
export function annotationOf(vmi: Vmi, name: string): string | undefined {
  return vmi.metadata.annotations?.[name];
}

/** Which kind of confidential guest a VMI asks for, as its firmware sees it. */
export function confidentialityOf(vmi: Vmi): Confidentiality {
  const security = vmi.spec.domain.launchSecurity;
  if (security?.snp !== undefined) return 'snp';
  if (security?.sev !== undefined) return 'sev';
  return security?.tdx === undefined ? 'none' : 'tdx';
}

/** Whether virtio devices must go through an IOMMU: AMD SEV and SNP, IBM secure execution. */
export function needsIommu(vmi: Vmi): boolean {
  const kind = confidentialityOf(vmi);
  if (kind === 'sev' || kind === 'snp') return true;
  return vmi.spec.architecture === 's390x' && vmi.spec.domain.launchSecurity !== undefined;
}

/** Whether the VMI has host CPUs of its own. */
export function hasDedicatedCpus(vmi: Vmi): boolean {
  return vmi.spec.domain.cpu?.dedicatedCpuPlacement === true;
}

/** Dedicated CPUs, realtime or huge pages: nothing may take memory from such a guest. */
export function isHighPerformance(vmi: Vmi): boolean {
  const { cpu, memory } = vmi.spec.domain;
  return hasDedicatedCpus(vmi) || cpu?.realtime !== undefined || memory?.hugepages !== undefined;
}

/** Whether the guest sees the host's NUMA cells. */
export function hasNumaPassthrough(vmi: Vmi): boolean {
  return vmi.spec.domain.cpu?.numa?.guestMappingPassthrough !== undefined;
}

/**
 * Whether the launcher of this VMI runs without root: decided from the VMI, not from the launcher's flag.
 *
 * @source KubeVirt v1.9.0 pkg/util/util.go, IsNonRootVMI
 */
export function isNonRoot(vmi: Vmi): boolean {
  return annotationOf(vmi, NONROOT_ANNOTATION) !== undefined || Number(vmi.status?.runtimeUser ?? 0) !== 0;
}

/** The bus of a disk of any kind. */
export function busOf(disk: VmiDisk): DiskBus | '' {
  return (disk.disk ?? disk.lun ?? disk.cdrom)?.bus ?? '';
}

/** Whether a feature that is named at all is on: it is, unless it says otherwise. */
export function isOn(state: { readonly enabled?: boolean } | undefined): boolean {
  return state !== undefined && state.enabled !== false;
}
