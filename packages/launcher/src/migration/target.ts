import { chown, mkdir } from 'node:fs/promises';
import type { Server } from 'node:net';
import { isConditionTrue } from '@virtwire/vm-model';
import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { SyncOptions } from '../cmd-server/complete-options.ts';
import { annotationOf } from '../converter/vmi-traits.ts';
import type { PausedSet } from '../domain/paused-set.ts';
import { gracePeriodOf } from '../domain/grace-period.ts';
import { LauncherError } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { adaptIncoming } from './hook-edits.ts';
import type { HookServer } from './hook-server.ts';
import type { PluggedDisks } from './plugged-disks.ts';
import type { MigrationRecord } from './record.ts';
import type { MigrationStream } from './sockets.ts';
import { migrationDir, streamPort, streamSocket } from './sockets.ts';
import { startTcpProxy } from './tcp-proxy.ts';
import { isBlockMigration } from './volumes.ts';

const BLOCKED_ANNOTATION = 'kubevirt.io/func-test-block-migration-target-preparation';
const BLOCKED_TEXT = 'Blocking preparation of migration target in order to satisfy a functional test condition';
const UNIX_TRANSPORT = 'Unix';

/** A pod that is almost ready for an incoming domain. */
export interface PreparedTarget {
  /** The domain that this pod would define; it is not defined, since libvirt gets it from the source. */
  readonly spec: DomainSpec;
  /** Makes room for the seed image. */
  readonly prepareSeed: () => Promise<void>;
}

/** Makes what an incoming domain finds in the pod. */
export interface TargetPreparation {
  prepareTarget(vmi: Vmi, options: SyncOptions | undefined, log: Logger): Promise<PreparedTarget>;
}

/** What a migration target needs. */
export interface MigrationTargetDeps {
  readonly preparation: TargetPreparation;
  readonly record: MigrationRecord;
  readonly metadata: Pick<MetadataCache, 'uid' | 'gracePeriod'>;
  readonly paused: PausedSet;
  readonly pluggedDisks: PluggedDisks;
  /** Undefined where the source edits the domain. */
  readonly hookServer: HookServer | undefined;
  /** CPUs of this pod. */
  readonly readPodCpuSet: () => Promise<readonly number[]>;
  /** What else is told of a domain before libvirt gets it; its changes do not reach a domain that comes from elsewhere. */
  readonly onDefine: (vmi: Vmi, spec: DomainSpec) => Promise<unknown>;
}

/** Where things are, and what this release can do. */
export interface MigrationTargetConfig {
  readonly shareDir: string;
  readonly qemuUser: { readonly uid: number; readonly gid: number };
  readonly renamesTaps: boolean;
  readonly replacesVgpu: boolean;
}

/** The target of a migration of this launcher's VM. */
export interface MigrationTarget {
  /** Ends what listens. */
  stop(): void;
  /**
   * Prepares the pod for the VM, in full at each call (FM-8.2).
   *
   * @throws {LauncherError} what could not be prepared
   */
  prepare(vmi: Vmi, options: SyncOptions | undefined, log: Logger): Promise<void>;
}

/** Creates the target, at rest. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-target.go` */
export function createMigrationTarget(deps: MigrationTargetDeps, config: MigrationTargetConfig): MigrationTarget {
  return new PodMigrationTarget(deps, config);
}

function uidOf(vmi: Vmi): string {
  const state = vmi.status?.migrationState;
  return (state?.targetState == null ? state?.migrationUid : state.targetState.migrationUID) ?? '';
}

function isDecentralized(vmi: Vmi): boolean {
  const { sourceState, targetState } = vmi.status?.migrationState ?? {};
  return sourceState != null && targetState != null;
}

class PodMigrationTarget implements MigrationTarget {
  readonly #deps: MigrationTargetDeps;
  readonly #config: MigrationTargetConfig;
  #proxies: readonly Server[] = [];

  constructor(deps: MigrationTargetDeps, config: MigrationTargetConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  async prepare(vmi: Vmi, options: SyncOptions | undefined, log: Logger): Promise<void> {
    const { preparation, metadata, record, paused, pluggedDisks, onDefine } = this.#deps;
    log.info('Executing PreStartHook on VMI pod environment');
    const { spec: wanted, prepareSeed } = await preparation.prepareTarget(vmi, options, log);
    await this.#startHookServer(vmi, wanted, options);
    metadata.uid.set(vmi.metadata.uid);
    metadata.gracePeriod.set({ ...metadata.gracePeriod.load(), DeletionGracePeriodSeconds: gracePeriodOf(vmi) });
    record.start(uidOf(vmi));
    await prepareSeed();
    await onDefine(vmi, wanted);
    if (annotationOf(vmi, BLOCKED_ANNOTATION) !== undefined) {
      throw new LauncherError('MigrationFailed', BLOCKED_TEXT);
    }
    await this.#prepareTransport(vmi, log);
    if (isDecentralized(vmi)) await pluggedDisks.check(vmi);
    if (!isConditionTrue(vmi.status?.conditions, 'Paused')) return;
    log.info('adding vmi uuid to pausedVMIs list on the target');
    paused.add(vmi.metadata.uid);
  }

  stop(): void {
    for (const proxy of this.#proxies) proxy.close();
    this.#proxies = [];
    this.#deps.hookServer?.stop();
  }

  async #startHookServer(vmi: Vmi, wanted: DomainSpec, options: SyncOptions | undefined): Promise<void> {
    const { hookServer, readPodCpuSet } = this.#deps;
    const { renamesTaps, replacesVgpu } = this.#config;
    await hookServer?.start(async (xml) => {
      const cpus = { cpuSet: await readPodCpuSet(), topology: options?.topology ?? { numaCells: [] } };
      return adaptIncoming(xml, { vmi, wanted, cpus, renamesTaps, replacesVgpu });
    });
  }

  /** QEMU listens on sockets in this directory; sources that know TCP only are led to them by proxies. */
  async #prepareTransport(vmi: Vmi, log: Logger): Promise<void> {
    const { shareDir, qemuUser } = this.#config;
    const dir = migrationDir(shareDir);
    await mkdir(dir, { recursive: true, mode: 0o755 });
    await chown(dir, qemuUser.uid, qemuUser.gid);
    if (vmi.status?.migrationTransport === UNIX_TRANSPORT || this.#proxies.length > 0) return;
    const streams: readonly MigrationStream[] = isBlockMigration(vmi) ? ['memory', 'disks'] : ['memory'];
    const proxies: Server[] = [];
    for (const stream of streams) {
      const socketPath = streamSocket(shareDir, vmi.metadata.uid, stream);
      proxies.push(await startTcpProxy({ socketPath, port: streamPort(stream) }, qemuUser, log));
    }
    this.#proxies = proxies;
  }
}
