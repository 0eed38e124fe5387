import { domainName, parseTime } from '@virtwire/vm-model';
import type { DomainDisk, DomainSpec, Vmi } from '@virtwire/vm-model';
import { backupCheckpoint } from '@virtwire/vm-model/payloads';
import type { BackupCheckpoint } from '@virtwire/vm-model/payloads';
import type { Logger } from '@virtwire/telemetry';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { LauncherError, textOf } from '../errors.ts';
import type { BlockNode } from './block-nodes.ts';
import { parseBlockNodes, QUERY_BLOCK_NODES } from './block-nodes.ts';
import { isTracked, renderCheckpoint } from './documents.ts';

/** What checkpoints need. */
export interface CheckpointDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getXml' | 'monitorCommand' | 'createCheckpoint'>;
  readonly parseSpec: (xml: string) => DomainSpec;
}

/** REDEFINE and REDEFINE_VALIDATE. */
const REDEFINE = 1 | 4;
/** INVALID_DOMAIN_CHECKPOINT, NO_DOMAIN_CHECKPOINT, CHECKPOINT_INCONSISTENT. */
const INVALID_CODES: ReadonlySet<number> = new Set([102, 103, 109]);

/** A failure to define a checkpoint again. */
export interface CheckpointRefusal {
  readonly message: string;
  /** It never will be: its bitmaps are gone or broken, and the next backup has to be a full one. */
  readonly isInvalid: boolean;
}

/**
 * Reads the `checkpoint` of RedefineCheckpoint.
 *
 * @throws {LauncherError} `BadRequest`
 */
export function parseCheckpoint(bytes: Uint8Array): BackupCheckpoint {
  try {
    return backupCheckpoint.parse(Buffer.from(bytes).toString('utf8'));
  } catch (caught) {
    throw LauncherError.from(caught, 'BadRequest', 'Redefine checkpoint failed: invalid checkpoint info: ');
  }
}

/** Runs a step under the words that its failure is told with. */
async function doing<T>(what: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (caught) {
    throw LauncherError.from(caught, 'BadRequest', what);
  }
}

async function queryNodes({ libvirt }: CheckpointDeps, domain: DomainRef): Promise<readonly BlockNode[]> {
  const reply = await doing('failed to query bitmaps: failed to execute QMP query-named-block-nodes: ', () =>
    libvirt.monitorCommand(domain, QUERY_BLOCK_NODES),
  );
  return doing('failed to query bitmaps: ', () => Promise.resolve(parseBlockNodes(reply)));
}

/** Targets of the tracked disks that have a bitmap of that name which can be used. */
async function findTargets(deps: CheckpointDeps, domain: DomainRef, name: string, log: Logger): Promise<string[]> {
  const { Devices } = await doing('failed to get domain disks: ', async () =>
    deps.parseSpec(await deps.libvirt.getXml(domain, 0)),
  );
  const nodes = await queryNodes(deps, domain);
  const hasBitmap = ({ Source }: DomainDisk): boolean => {
    const file = Source?.File ?? '';
    const bitmaps = nodes.filter((node) => node.file === file).flatMap((node) => node.bitmaps);
    const bitmap = bitmaps.find((one) => one.name === name);
    if (bitmap?.isInconsistent !== true) return bitmap !== undefined;
    const reason = 'is inconsistent (possibly from failed migration), treating as absent';
    log.warn(`Bitmap ${name} on ${file} ${reason}`);
    return false;
  };
  const tracked = (Devices.Disks ?? []).filter((disk) => isTracked(disk) && (disk.Target?.Device ?? '') !== '');
  return tracked.filter(hasBitmap).map((disk) => disk.Target?.Device ?? '');
}

/**
 * Tells a libvirt that was started anew about a checkpoint whose bitmaps are in the overlays still.
 *
 * @returns undefined when libvirt knows it now.
 * @throws {LauncherError} `BadRequest` when it may work another time.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup.go RedefineCheckpoint
 */
export async function redefineCheckpoint(
  deps: CheckpointDeps,
  vmi: Vmi,
  checkpoint: BackupCheckpoint,
  log: Logger,
): Promise<CheckpointRefusal | undefined> {
  const { name, creationTime } = checkpoint;
  log.info('Redefining checkpoint');
  const domainOf = domainName(vmi.metadata.namespace, vmi.metadata.name);
  const domain = await doing(`failed to lookup domain ${domainOf}: `, () => deps.libvirt.lookupDomainByName(domainOf));
  const targets = await findTargets(deps, domain, name, log);
  if (targets.length === 0) {
    log.warn('No disks found with checkpoint bitmap');
    return { message: `no disks found with checkpoint bitmap ${name}`, isInvalid: true };
  }
  const disks = new Map(targets.map((target) => [target, 'bitmap'] as const));
  const madeAt = creationTime === null ? undefined : Math.floor(parseTime(creationTime) / 1_000);
  try {
    await deps.libvirt.createCheckpoint(domain, renderCheckpoint(name, disks, madeAt), REDEFINE);
  } catch (caught) {
    const isInvalid = caught instanceof LibvirtCallError && INVALID_CODES.has(caught.code);
    if (isInvalid) log.error({ reason: caught }, 'Checkpoint bitmap is invalid/corrupt');
    return { message: `failed to redefine checkpoint ${name}: ${textOf(caught)}`, isInvalid };
  }
  log.info(`Checkpoint redefined successfully with ${targets.length} disks`);
  return undefined;
}
