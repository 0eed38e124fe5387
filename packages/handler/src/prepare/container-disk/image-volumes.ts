import type { ClusterConfig } from '../../cluster-config.ts';
import { HandlerError } from '../../errors.ts';
import type { Vmi } from '../../model.ts';
import type { ContainerDiskPart } from '../parts.ts';

function usesContainerDisk(vmi: Vmi): boolean {
  const hasDisk = (vmi.spec.volumes ?? []).some((volume) => volume.containerDisk !== undefined);
  return hasDisk || vmi.spec.domain.firmware?.kernelBoot?.container !== undefined;
}

/**
 * Container disks that the pod has mounted before the handler looks: image volumes of the kubelet, or the binds of a
 * sandbox. There is nothing to wait for, to mount or to remove.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/container-disk/mount.go:246, 383 (gate ImageVolume)
 */
export function createImageVolumePart(config: () => ClusterConfig): ContainerDiskPart {
  return {
    async ready(vmi) {
      if (config().isGateOn('ImageVolume') || !usesContainerDisk(vmi)) return true;
      throw new HandlerError(
        'Invalid',
        'container disks need the feature gate ImageVolume: mounting them from disk containers is not supported yet',
      );
    },
    async mountAndVerify() {
      // Mounted by whoever made the pod.
    },
    async unmount() {
      // They go with the pod.
    },
  };
}
