import type { Vmi, VmiInterface } from '../model.ts';

function interfacesOf(vmi: Vmi): readonly VmiInterface[] {
  return vmi.spec.domain.devices.interfaces ?? [];
}

function infoSources(vmi: Vmi, name: string): readonly string[] | undefined {
  const status = vmi.status?.interfaces?.find((entry) => entry.name === name);
  return status === undefined ? undefined : (status.infoSource ?? '').split(', ').filter((source) => source !== '');
}

function networkNames(vmi: Vmi, keep: (iface: VmiInterface) => boolean): readonly string[] {
  const known = new Set((vmi.spec.networks ?? []).map((network) => network.name));
  return interfacesOf(vmi)
    .filter((iface) => known.has(iface.name) && keep(iface))
    .map((iface) => iface.name);
}

/** Networks to set up for a start: those of all interfaces that are not absent, in the order of the interfaces. */
export function networksToStart(vmi: Vmi): readonly string[] {
  return networkNames(vmi, (iface) => iface.state !== 'absent');
}

/**
 * Networks to work on while the VM runs: pod interfaces that the domain does not have yet, and absent ones that the
 * domain has no more.
 *
 * @source KubeVirt v1.9.0 pkg/network/setup (FilterNetsForLiveUpdate)
 */
export function networksToUpdate(vmi: Vmi): readonly string[] {
  return networkNames(vmi, (iface) => {
    const sources = infoSources(vmi, iface.name);
    if (sources === undefined || sources.includes('domain')) return false;
    return iface.state === 'absent' || sources.includes('multus-status');
  });
}

/** True when multus reports an SR-IOV interface that the domain does not have. */
export function hasSriovToPlug(vmi: Vmi): boolean {
  return interfacesOf(vmi).some((iface) => {
    if (iface.sriov === undefined || iface.state === 'absent') return false;
    const sources = infoSources(vmi, iface.name) ?? [];
    return sources.includes('multus-status') && !sources.includes('domain');
  });
}

/** True when a bridge of the pod is the gateway of an interface. */
export function isRouted(vmi: Vmi): boolean {
  return interfacesOf(vmi).some((iface) => iface.masquerade !== undefined && iface.state !== 'absent');
}
