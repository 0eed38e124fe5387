import { join } from 'node:path/posix';
import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { SyncOptions } from '../cmd-server/complete-options.ts';
import type { Clock } from '../config/clock.ts';
import type { LauncherFlags } from '../config/flags.ts';
import type { DomainPaths } from '../converter/circumstances.ts';
import type { ImagePort } from '../disks/ports.ts';
import type { GuestTimeSync } from '../domain/guest-time.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import type { Mutex } from '../domain/mutex.ts';
import type { PausedSet } from '../domain/paused-set.ts';
import type { VmiPreparation } from '../domain/sync.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { ephemeralBytes } from './ephemeral-bytes.ts';
import type { InterfaceMigrations } from './finalize.ts';
import { finalizeMigration } from './finalize.ts';
import { createHookServer } from './hook-server.ts';
import type { MigrationCalls } from './libvirt-port.ts';
import { createPluggedDisks } from './plugged-disks.ts';
import { createMigrationRecord } from './record.ts';
import type { MigrationSource } from './source.ts';
import { createMigrationSource } from './source.ts';
import type { MigrationTarget, TargetPreparation } from './target.ts';
import { createMigrationTarget } from './target.ts';
import { within } from '../config/within.ts';

/** libvirt returns from its migrate call right after QEMU's end. */
const RESULT_LIMIT_MS = 10_000;
const FAREWELL_MS = 1_000;
const HOOK_SOCKET = 'migration-hook-socket';

/** What only migrations need of the outside world. */
export interface MigrationWorld {
  readonly calls: MigrationCalls;
  readonly images: Pick<ImagePort, 'info'>;
  readonly paths: DomainPaths;
  /** The user that QEMU runs as. */
  readonly qemuUser: { readonly uid: number; readonly gid: number };
  /** libvirt's number of the daemon's release; without it it is taken for the newest. */
  readonly libvirtVersion?: () => Promise<bigint>;
}

/** What migrations share with the rest of the launcher. */
export interface MigrationPartsDeps {
  readonly world: MigrationWorld;
  readonly libvirt: LibvirtPort;
  readonly preparation: TargetPreparation & Pick<VmiPreparation<SyncOptions>, 'podCpuSet'>;
  readonly metadata: MetadataCache;
  readonly paused: PausedSet;
  readonly mutex: Mutex;
  readonly guestTime: GuestTimeSync;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly onDefine: (vmi: Vmi, spec: DomainSpec) => Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Both sides of migrations, at rest. */
export interface MigrationParts {
  readonly source: MigrationSource;
  readonly target: MigrationTarget;
  finalize(vmi: Vmi, migrations: InterfaceMigrations): Promise<void>;
  /**
   * Waits, when QEMU is gone, until it is known what became of a migration: the source for its result (FM-8.4), a target
   * for its libvirt, which still has to tell the source's of the failure.
   */
  settle(): Promise<void>;
  /** Ends what listens for migrations. */
  stop(): void;
}

/** Creates what migrates the VM of a launcher, as its source and as its target. */
export function createMigrationParts(deps: MigrationPartsDeps, flags: LauncherFlags): MigrationParts {
  const { world, libvirt, metadata, paused, mutex, guestTime, parseSpec, clock, log, preparation } = deps;
  const { calls, images, paths, qemuUser, libvirtVersion } = world;
  const record = createMigrationRecord(metadata, clock);
  const shareDir = flags.kubevirtShareDir;
  const { libvirtHookServerAndClient: hasHooks, ephemeralDiskDir } = flags;
  const source = createMigrationSource(
    {
      ...{ libvirt, calls, record, paused, mutex, clock, images, parseSpec, libvirtVersion },
      ephemeralBytes: () => ephemeralBytes(ephemeralDiskDir),
    },
    { shareDir, paths, targetHasHooks: hasHooks },
  );
  const target = createMigrationTarget(
    {
      ...{ preparation, record, metadata, paused, onDefine: deps.onDefine },
      pluggedDisks: createPluggedDisks(flags.hotplugDiskDir),
      hookServer: hasHooks ? createHookServer(join(shareDir, HOOK_SOCKET), log) : undefined,
      readPodCpuSet: () => preparation.podCpuSet(),
    },
    { shareDir, qemuUser, renamesTaps: flags.upgradeOrdinalIfaces, replacesVgpu: flags.vgpuDedicatedHook },
  );
  const finalizeDeps = { libvirt, parseSpec, guestTime, mutex, clock };
  async function settle(): Promise<void> {
    if (source.isActive()) await within(clock, RESULT_LIMIT_MS, source.settled());
    else if (record.isRunning()) await clock.sleep(FAREWELL_MS);
  }
  return {
    source,
    target,
    settle,
    stop: () => target.stop(),
    finalize: (vmi, migrations) => finalizeMigration(finalizeDeps, vmi, migrations),
  };
}
