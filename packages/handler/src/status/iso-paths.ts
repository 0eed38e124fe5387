import type { Vmi, Volume } from '../model.ts';

const PRIVATE = '/var/run/kubevirt-private';

function isoPath(vmi: Vmi, volume: Volume): string | undefined {
  const { namespace, name } = vmi.metadata;
  const cloudInit = `/var/run/kubevirt-ephemeral-disks/cloud-init-data/${namespace}/${name}`;
  if (volume.cloudInitNoCloud !== undefined) return `${cloudInit}/noCloud.iso`;
  if (volume.cloudInitConfigDrive !== undefined) return `${cloudInit}/configdrive.iso`;
  if (volume.configMap !== undefined) return `${PRIVATE}/config-map-disks/${volume.name}.iso`;
  if (volume.secret !== undefined) return `${PRIVATE}/secret-disks/${volume.name}.iso`;
  if (volume.downwardAPI !== undefined) return `${PRIVATE}/downwardapi-disks/${volume.name}.iso`;
  if (volume.sysprep !== undefined) return `${PRIVATE}/sysprep-disks/${volume.name}.iso`;
  if (volume.serviceAccount !== undefined) return `${PRIVATE}/service-account-disk/service-account.iso`;
  return undefined;
}

/**
 * Where the launcher puts the ISOs whose size belongs into the status: volume name to path in its root.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateIsoSizeStatus)
 */
export function isoPaths(vmi: Vmi): ReadonlyMap<string, string> {
  const disks = new Set((vmi.spec.domain.devices.disks ?? []).map((disk) => disk.name));
  const paths = new Map<string, string>();
  for (const volume of vmi.spec.volumes ?? []) {
    const path = disks.has(volume.name) ? isoPath(vmi, volume) : undefined;
    if (path !== undefined) paths.set(volume.name, path);
  }
  return paths;
}
