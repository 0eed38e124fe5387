import type { MigrationSettings } from './settings.ts';

/** libvirt's numbers of migration flags. */
const FLAG = {
  live: 1,
  peerToPeer: 2,
  persistDest: 8,
  paused: 32,
  nonSharedInc: 128,
  unsafe: 512,
  compressed: 2048,
  autoConverge: 8192,
  postCopy: 32768,
  parallel: 131072,
} as const;

/** What decides the flags beside the settings. */
export interface MigrationKind {
  /** Disks are copied. */
  readonly copiesDisks: boolean;
  /** Somebody paused the guest; it stays paused on the target. */
  readonly isPausedByUser: boolean;
}

/**
 * Flags of libvirt's migrate call.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go generateMigrationFlags
 */
export function migrationFlags(settings: MigrationSettings, kind: MigrationKind): number {
  const wanted: readonly (readonly [boolean, number])[] = [
    [kind.copiesDisks, FLAG.nonSharedInc],
    [settings.isUnsafe, FLAG.unsafe],
    [settings.compression !== undefined, FLAG.compressed],
    [settings.autoConverges, FLAG.autoConverge],
    [settings.allowsPostCopy, FLAG.postCopy],
    [kind.isPausedByUser, FLAG.paused],
    [settings.parallelConnections !== undefined, FLAG.parallel],
  ];
  const always = FLAG.live | FLAG.peerToPeer | FLAG.persistDest;
  return wanted.reduce((flags, [isOn, flag]) => (isOn ? flags | flag : flags), always);
}
