import type { Vmi } from '@virtwire/vm-model';
import type { LauncherProgram } from '../sandbox/launcher-bundle.ts';

const DEFAULT_GRACE_SECONDS = 30;
/** The launcher waits this much longer than the guest may take. `@source KubeVirt v1.9.0 pkg/virt-controller/services/template.go` */
const GRACE_PADDING_SECONDS = 15;
const QEMU_TIMEOUT_SECONDS = 240;
const NONROOT_DIRS = [
  'XDG_CACHE_HOME=/var/run/kubevirt-private',
  'XDG_CONFIG_HOME=/var/run/kubevirt-private',
  'XDG_RUNTIME_DIR=/var/run',
];

/** What starts a launcher in its sandbox. */
export interface LauncherCommand {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly user: number;
}

/** Seconds that a guest may take to shut down when asked. */
export function graceSeconds(vmi: Vmi): number {
  return Number(vmi.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS);
}

/** Name of the pod that a VMI would have. */
function podNameOf(vmi: Vmi): string {
  return `virt-launcher-${vmi.metadata.name}`;
}

/**
 * The command line that virt-controller gives the compute container, with our launcher as program.
 *
 * @source KubeVirt v1.9.0 pkg/virt-controller/services/template.go:452
 */
export function launcherCommand(
  vmi: Vmi,
  program: Pick<LauncherProgram, 'command' | 'script'>,
  options: { readonly kvmWorks: boolean },
): LauncherCommand {
  const { name, namespace, uid, annotations } = vmi.metadata;
  const user = Number(vmi.status?.runtimeUser ?? 107);
  const filters = annotations?.['kubevirt.io/libvirt-log-filters'];
  const flags = [
    ['--qemu-timeout', `${QEMU_TIMEOUT_SECONDS}s`],
    ['--name', name],
    ['--uid', uid],
    ['--namespace', namespace],
    ['--kubevirt-share-dir', '/var/run/kubevirt'],
    ['--ephemeral-disk-dir', '/var/run/kubevirt-ephemeral-disks'],
    ['--container-disk-dir', '/var/run/kubevirt/container-disks'],
    ['--grace-period-seconds', String(graceSeconds(vmi) + GRACE_PADDING_SECONDS)],
    ['--hook-sidecars', '0'],
    ['--ovmf-path', '/usr/share/OVMF'],
    ['--disk-memory-limit', '2097152000'],
    ['--hypervisor', 'kvm'],
    ...(user === 0 ? [] : [['--run-as-nonroot']]),
    ['--image-volume'],
    ...(filters === undefined ? [] : [['--libvirt-log-filters', filters]]),
    ...(options.kvmWorks ? [] : [['--allow-emulation']]),
  ];
  return {
    args: [...program.command, ...flags.flat()],
    env: [
      ...(user === 0 ? [] : NONROOT_DIRS),
      ...(program.script === undefined ? [] : ['VIRT_LAUNCHER_NO_SIDECARS=1']),
      `POD_NAME=${podNameOf(vmi)}`,
    ],
    user,
  };
}
