import type { DomainSpec } from '@virtwire/vm-model';
import type { DiskError } from '../domain/libvirt-port.ts';
import type { K8sEvent } from './k8s-event.ts';

const NONE = 0;
const UNSPECIFIED = 1;
const NO_SPACE = 2;

function volumeOf(spec: DomainSpec | undefined, target: string): string {
  const disk = spec?.Devices.Disks?.find((candidate) => candidate.Target?.Device === target);
  return disk?.Alias?.Name ?? '';
}

function messageOf(error: number, volume: string): string {
  if (error === UNSPECIFIED) return `VM Paused due to IO error at the volume: ${volume}`;
  if (error === NO_SPACE) return `VM Paused due to not enough space on volume: ${volume}`;
  return '';
}

/**
 * One Kubernetes event per failing disk of a VM that is paused for an I/O error.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:300
 */
export function decideIoErrorEvents(errors: readonly DiskError[], spec: DomainSpec | undefined): readonly K8sEvent[] {
  const failing = errors.filter(({ error }) => error !== NONE);
  return failing.map(({ disk, error }) => ({
    type: 'Warning',
    reason: 'IOerror',
    message: messageOf(error, volumeOf(spec, disk)),
  }));
}
