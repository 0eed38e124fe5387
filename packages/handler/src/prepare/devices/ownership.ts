import { errnoOf } from '@virtwire/host';
import { errorText, HandlerError } from '../../errors.ts';
import { isNonRoot } from '../../model.ts';
import type { DomainSpecDevices } from '@virtwire/vm-model';
import type { Vmi, VmiInterface } from '../../model.ts';
import type { LauncherRoot } from './launcher-root.ts';

const VFIO_DIR = '/dev/vfio';
const VFIO_CONTROL_MODE = 0o666;
const HOST_DISKS_DIR = '/var/run/kubevirt-private/vmi-disks';
const VIRTIOFS_DIR = '/var/run/kubevirt/virtiofs-containers';

/** What ownership depends on, beside the VMI. */
export interface DeviceFacts {
  /** Name of the hypervisor's device below `/dev`. */
  readonly hypervisorDevice: string;
  /** VMs may run without hardware virtualisation. */
  readonly useEmulation: boolean;
  /** Creates missing host disk images; its place in the order is between the device nodes. */
  readonly createHostDisks?: () => Promise<void>;
}

/**
 * Gives the device nodes and files that QEMU opens to its user, in the launcher's own tree, so that no device of the
 * node changes.
 *
 * @throws {HandlerError} `CriticalNetwork` for tun and vhost-net.
 * @source KubeVirt v1.9.0 pkg/virt-handler/controller.go:267
 */
export async function setUpOwnership(root: LauncherRoot, vmi: Vmi, facts: DeviceFacts): Promise<void> {
  claimHypervisor(root, facts);
  const { devices, launchSecurity } = vmi.spec.domain;
  if (devices.autoattachVSOCK === true) root.chownToQemu('/dev/vhost-vsock');
  await facts.createHostDisks?.();
  if (launchSecurity?.sev !== undefined || launchSecurity?.snp !== undefined) root.chownToQemu('/dev/sev');
  if (isNonRoot(vmi)) {
    claimBlockVolumes(root, vmi);
    claimHostDisks(root, vmi);
    claimVfio(root);
    claimNetworkDevices(root, devices, facts);
  }
  for (const { name } of devices.filesystems ?? []) root.chownToQemu(`${VIRTIOFS_DIR}/${name}.sock`);
}

function claimHypervisor(root: LauncherRoot, facts: DeviceFacts): void {
  const device = `/dev/${facts.hypervisorDevice}`;
  try {
    root.chownToQemu(device);
  } catch (caught) {
    if (facts.useEmulation && errnoOf(caught) === 'ENOENT') return;
    throw failure('Internal', `failed to set up file ownership for ${device}: `, caught);
  }
}

/** Block claims are device nodes of the volume's name. */
function claimBlockVolumes(root: LauncherRoot, vmi: Vmi): void {
  for (const volume of vmi.spec.volumes ?? []) {
    if (volume.persistentVolumeClaim === undefined) continue;
    const status = vmi.status?.volumeStatus?.find((s) => s.name === volume.name);
    if (status === undefined) throw new HandlerError('Invalid', `missing volume status for volume ${volume.name}`);
    if (status.persistentVolumeClaimInfo?.volumeMode !== 'Block') continue;
    try {
      root.chownToQemu(`/dev/${volume.name}`);
    } catch (caught) {
      if (errnoOf(caught) !== 'ENOENT') throw caught; // a hotplugged one comes later
    }
  }
}

/** QEMU makes new files beside an image, so it is the directory that it needs. */
function claimHostDisks(root: LauncherRoot, vmi: Vmi): void {
  for (const volume of vmi.spec.volumes ?? []) {
    if (volume.hostDisk !== undefined) root.chownToQemu(`${HOST_DISKS_DIR}/${volume.name}`);
  }
}

/** Groups are given to QEMU one by one; the control node is open to all, and without it the groups are of no use. */
function claimVfio(root: LauncherRoot): void {
  const names = root.list(VFIO_DIR);
  if (!names.includes('vfio')) return;
  for (const name of names) {
    if (name === 'vfio') root.chmod(`${VFIO_DIR}/vfio`, VFIO_CONTROL_MODE);
    else root.chownToQemu(`${VFIO_DIR}/${name}`);
  }
}

/** @source KubeVirt v1.9.0 pkg/util/util.go (NeedTunDevice, NeedVirtioNetDevice) */
function claimNetworkDevices(root: LauncherRoot, devices: DomainSpecDevices, facts: DeviceFacts): void {
  const { interfaces = [] } = devices;
  const isVirtio = (i: VmiInterface): boolean => i.model === undefined || i.model === '' || i.model === 'virtio';
  if (!facts.useEmulation && interfaces.some(isVirtio)) claimCritical(root, '/dev/vhost-net', 'vhost-net');
  if (interfaces.length > 0) claimCritical(root, '/dev/net/tun', 'tun');
}

function claimCritical(root: LauncherRoot, path: string, what: string): void {
  try {
    root.chownToQemu(path);
  } catch (caught) {
    throw failure('CriticalNetwork', `Critical network error: failed to set up ${what} device, `, caught);
  }
}

function failure(code: 'CriticalNetwork' | 'Internal', doing: string, caught: unknown): HandlerError {
  return new HandlerError(code, `${doing}${errorText(caught)}`, { cause: caught });
}
