import { escapeXml } from '@virtwire/vm-model';
import type { DomainDisk } from '@virtwire/vm-model';
import type { BackupStart } from './request.ts';
import { renderNameTime } from './request.ts';

/** A volume of a backup, as metadata name it. */
export interface BackupVolume {
  readonly volumeName: string;
  readonly diskTarget: string;
}

/** What libvirt is told about a backup. */
export interface BackupDocuments {
  readonly checkpointName: string;
  readonly backupXml: string;
  readonly checkpointXml: string;
  readonly volumes: readonly BackupVolume[];
}

/** A backup and the files it uses. */
export interface BackupPlan extends BackupStart {
  /** Where images or scratch files of this backup go. */
  readonly directory: string;
  /** Socket on which QEMU shows a pull backup. */
  readonly nbdSocket: string;
}

/** True for a disk whose changes are tracked: its bytes lie in a data store behind an overlay. */
export function isTracked({ Source }: DomainDisk): boolean {
  return Source?.DataStore !== undefined;
}

/** Name of the checkpoint that a backup sets, and of its directory. */
export function checkpointNameOf({ name, startTime }: Pick<BackupStart, 'name' | 'startTime'>): string {
  return `${name}-${renderNameTime(startTime)}`;
}

function element(name: string, attributes: Readonly<Record<string, string>>, content = ''): string {
  const text = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(value)}"`);
  return `<${name}${text.join('')}>${content}</${name}>`;
}

const targetOf = ({ Target }: DomainDisk): string => Target?.Device ?? '';

function backupDisk(plan: BackupPlan, disk: DomainDisk): string {
  const name = targetOf(disk);
  if (!isTracked(disk)) return element('disk', { name, backup: 'no' });
  const volume = disk.Alias?.Name ?? '';
  const file = `${plan.directory}/${plan.name}-${volume}.qcow2`;
  const attributes = { name, backup: 'yes', type: 'file' };
  if (plan.mode === 'Push') return element('disk', attributes, element('target', { file }));
  const shown = { exportname: volume, exportbitmap: checkpointNameOf(plan) };
  return element('disk', { ...attributes, ...shown }, element('scratch', { file }));
}

function renderBackup(plan: BackupPlan, disks: readonly DomainDisk[]): string {
  const since = plan.incremental === undefined ? '' : element('incremental', {}, escapeXml(plan.incremental));
  const all = element('disks', {}, disks.map((disk) => backupDisk(plan, disk)).join(''));
  const server = plan.mode === 'Pull' ? element('server', { transport: 'unix', socket: plan.nbdSocket }) : '';
  return element('domainbackup', { mode: plan.mode.toLowerCase() }, since + all + server);
}

/**
 * A checkpoint for libvirt.
 *
 * @param disks `bitmap` or `no` by target.
 * @param creationTime seconds since 1970, for one that is defined again.
 */
export function renderCheckpoint(
  name: string,
  disks: ReadonlyMap<string, 'bitmap' | 'no'>,
  creationTime?: number,
): string {
  const all = [...disks].map(([target, checkpoint]) => element('disk', { name: target, checkpoint }));
  const made = creationTime === undefined ? '' : element('creationTime', {}, String(creationTime));
  const content = element('name', {}, escapeXml(name)) + element('disks', {}, all.join('')) + made;
  return element('domaincheckpoint', {}, content);
}

/**
 * What libvirt is told to back up a domain's tracked disks, and to set a checkpoint from which the next backup can go on.
 *
 * KubeVirt writes both documents in lower case as a whole, paths included; here names of files stay as they are.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup.go generateDomainBackup
 */
export function createBackupDocuments(plan: BackupPlan, disks: readonly DomainDisk[]): BackupDocuments {
  const named = disks.filter((disk) => targetOf(disk) !== '');
  const checkpointName = checkpointNameOf(plan);
  const states = named.map((disk) => [targetOf(disk), isTracked(disk) ? 'bitmap' : 'no'] as const);
  return {
    checkpointName,
    backupXml: renderBackup(plan, named),
    checkpointXml: renderCheckpoint(checkpointName, new Map(states)),
    volumes: named
      .filter(isTracked)
      .map((disk) => ({ volumeName: disk.Alias?.Name ?? '', diskTarget: targetOf(disk) })),
  };
}
