import { type MigrationMetadata, renderTime, type Vmi } from '@virtwire/vm-model';

import type { LauncherFaults } from '../api.ts';
import type { Fields } from '../schema/release-schema.ts';
import { convertVmi } from './domain-spec.ts';
import { ProcessCrash, Refusal } from './outcome.ts';
import type { Vm } from './vm.ts';

/** What a launcher reads of the options of a migration. */
export interface MigrationRequest {
  readonly vmi: Vmi;
  /** Decoded; null is what a Go launcher takes and then trips over. */
  readonly options: Fields | null;
}

/** The migration of a VM, from either end. */
export class VmMigration {
  readonly #vm: Vm;
  readonly #faults: LauncherFaults;
  #role: 'source' | 'target' | undefined;
  #target: Vmi | undefined;
  #isFinalized = false;
  #allowsDisruption = false;

  constructor(vm: Vm, faults: LauncherFaults) {
    this.#vm = vm;
    this.#faults = faults;
  }

  get role(): 'source' | 'target' | undefined {
    return this.#role;
  }

  get isFinalized(): boolean {
    return this.#isFinalized;
  }

  get allowsDisruption(): boolean {
    return this.#allowsDisruption;
  }

  get #metadata(): MigrationMetadata | undefined {
    return this.#vm.metadata.Migration;
  }

  #update(change: Partial<MigrationMetadata>): void {
    this.#vm.metadata = { ...this.#vm.metadata, Migration: { ...this.#metadata, ...change } };
  }

  /** @source wire.md 6 MigrateVirtualMachine, 11 */
  start({ vmi, options }: MigrationRequest): void {
    const { facts } = this.#vm.deps;
    const { migrationState } = vmi.status ?? {};
    if (migrationState === undefined) throw new Refusal(facts.migrateNotReadyText.value);
    const uid = uidOf(vmi);
    if (this.#metadata?.UID === uid) {
      if (this.#metadata.EndTimestamp === undefined) return;
      throw alreadyOver(this.#metadata);
    }
    this.#vm.requireDomain();
    if (options === null && facts.crashesOnNullMigrationOptions.value) {
      throw new ProcessCrash('MigrateVirtualMachine with options null');
    }
    this.#role = 'source';
    const key = facts.workloadDisruption.value === 'allowPostCopy' ? 'AllowPostCopy' : 'AllowWorkloadDisruption';
    this.#allowsDisruption = options?.[key] === true;
    const StartTimestamp = renderTime(this.#vm.deps.now());
    this.#vm.metadata = { ...this.#vm.metadata, Migration: { UID: uid, StartTimestamp, Mode: 'PreCopy' } };
    this.#vm.deps.onEvent('MODIFIED');
    this.#vm.deps.after(this.#vm.deps.lifeCycle.migrationMs, () => this.#end(uid));
  }

  #end(uid: string): void {
    if (this.#metadata?.UID !== uid || this.#metadata.EndTimestamp !== undefined) return;
    const EndTimestamp = renderTime(this.#vm.deps.now());
    const { failMigration } = this.#faults;
    if (failMigration !== undefined || this.#metadata.AbortStatus !== undefined) {
      const FailureReason = failMigration ?? 'Live migration has been aborted';
      const aborted = this.#metadata.AbortStatus === undefined ? {} : { AbortStatus: 'Succeeded' };
      this.#update({ EndTimestamp, Failed: true, FailureReason, Completed: true, ...aborted });
      this.#vm.deps.onEvent('MODIFIED');
      return;
    }
    this.#vm.change('Paused', 'Migration');
    this.#update({ EndTimestamp, Completed: true });
    this.#vm.change('Shutoff', 'Migrated');
    this.#vm.deps.onEvent('MODIFIED');
  }

  /** @source wire.md 6 CancelVirtualMachineMigration */
  cancel(): void {
    const { facts } = this.#vm.deps;
    const isRunning = this.#role === 'source' && this.#metadata?.EndTimestamp === undefined;
    if (!isRunning) {
      if (facts.cancelWithoutMigration.value === 'success') return;
      throw new Refusal('failed to cancel migration - vmi is not migrating');
    }
    if (this.#metadata?.AbortStatus !== undefined) return;
    this.#update({ AbortStatus: 'Aborting' });
    this.#vm.deps.onEvent('MODIFIED');
    const uid = this.#metadata?.UID ?? '';
    this.#vm.deps.after(1, () => this.#end(uid));
  }

  /** @source wire.md 6 SyncMigrationTarget; domain-json.md 4 */
  prepare(vmi: Vmi): void {
    const { facts } = this.#vm.deps;
    const uid = uidOf(vmi);
    const metadata = this.#metadata;
    const refuses = facts.refusesMigrationAlreadyOver.value === 'sourceAndTarget';
    if (refuses && metadata?.EndTimestamp !== undefined && (metadata.UID ?? '') === uid) throw alreadyOver(metadata);
    this.#checkVolumes(vmi);
    this.#role = 'target';
    this.#target = vmi;
    this.#vm.metadata = {
      ...this.#vm.metadata,
      UID: vmi.metadata.uid,
      GracePeriod: { DeletionGracePeriodSeconds: vmi.spec.terminationGracePeriodSeconds ?? 30 },
    };
    if (facts.targetMetadataFromPreparation.value && metadata === undefined) {
      this.#update({ UID: uid, StartTimestamp: renderTime(this.#vm.deps.now()), Mode: 'PreCopy' });
    }
  }

  /**
   * Images that a launcher makes itself have to be as large as on the source, which the status says.
   *
   * @source captures v1.9.0/migration-failed-target/004-SyncMigrationTarget
   */
  #checkVolumes(vmi: Vmi): void {
    const statuses = vmi.status?.volumeStatus ?? [];
    const missing = vmi.spec.volumes?.find(
      ({ name, cloudInitNoCloud, cloudInitConfigDrive }) =>
        (cloudInitNoCloud !== undefined || cloudInitConfigDrive !== undefined) &&
        !statuses.some((status) => status.name === name),
    );
    if (missing !== undefined) throw new Refusal(`failed to find the status of volume ${missing.name}`);
  }

  /** The domain arrives from the source. @source captures v1.9.0/migration-target/009 to 018 */
  receive(): void {
    const vmi = this.#target;
    if (vmi === undefined || this.#vm.domain !== undefined) return;
    this.#vm.adopt(convertVmi(vmi, { attachments: undefined }));
    this.#vm.deps.onEvent('ADDED');
    this.#vm.deps.after(this.#vm.deps.lifeCycle.startMs, () => {
      this.#vm.change('Running', 'Unknown');
      const { facts, lifeCycle } = this.#vm.deps;
      if (facts.reportsTargetEnd.value) {
        this.#update({ EndTimestamp: renderTime(this.#vm.deps.now()) });
        this.#vm.deps.onEvent('MODIFIED');
      }
      if (facts.extraEventAfterMigration.value) this.#vm.deps.onEvent('MODIFIED');
      if (lifeCycle.agentMs !== 'never') this.#vm.deps.after(lifeCycle.agentMs, () => this.#vm.setAgent(true));
    });
  }

  finalize(hasOptions: boolean): void {
    if (!hasOptions && this.#vm.deps.facts.crashesWithoutFinalizeOptions.value) {
      throw new ProcessCrash('FinalizeVirtualMachineMigration without options');
    }
    this.#isFinalized = true;
  }
}

function uidOf(vmi: Vmi): string {
  const { migrationState } = vmi.status ?? {};
  return migrationState?.sourceState?.migrationUID ?? migrationState?.migrationUid ?? '';
}

function alreadyOver(metadata: MigrationMetadata): Refusal {
  const { UID = '', EndTimestamp = '', Failed = false, AbortStatus = '' } = metadata;
  const outcome = `failed: ${Failed}, abortStatus: ${AbortStatus}`;
  return new Refusal(`migration job ${UID} already executed, finished at ${EndTimestamp}, ${outcome}`);
}
