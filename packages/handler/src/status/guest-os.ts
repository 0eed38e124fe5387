import type { Domain, VmiStatus } from '../model.ts';

type GuestOsInfo = NonNullable<VmiStatus['guestOSInfo']>;

/**
 * The guest's operating system, copied when its name appears or changes; never cleared.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateGuestInfoFromDomain)
 */
export function guestOsInfo(old: GuestOsInfo | undefined, domain: Domain): GuestOsInfo | undefined {
  const info = domain.Status.OSInfo;
  if (!info.Name || info.Name === (old?.name ?? '')) return old;
  const fields: [keyof GuestOsInfo, string | undefined][] = [
    ['name', info.Name],
    ['kernelRelease', info.KernelRelease],
    ['version', info.Version],
    ['prettyName', info.PrettyName],
    ['versionId', info.VersionId],
    ['kernelVersion', info.KernelVersion],
    ['machine', info.Machine],
    ['id', info.Id],
  ];
  return Object.fromEntries(fields.filter(([, value]) => value));
}

/** `status.fsFreezeStatus`: set while frozen, empty when thawed, kept while the domain says nothing. */
export function fsFreezeStatus(old: string | undefined, domain: Domain): string | undefined {
  const status = domain.Status.FSFreezeStatus.Status ?? '';
  if (status === '') return old;
  return status === 'thawed' ? undefined : status;
}
