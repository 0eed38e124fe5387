import { parseQuantity, quantityValue } from '@virtwire/vm-model';
import { migrationOptions } from '@virtwire/vm-model/payloads';
import type { MigrationOptions } from '@virtwire/vm-model/payloads';
import { LauncherError, textOf } from '../errors.ts';

const MIB = 1n << 20n;
const ZSTD = 'zstd';
/** As Go's resource.Quantity says it. */
const BAD_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Tuning of the stall detector. Times in seconds. */
export interface StallSettings {
  /** Fraction by which two amounts of remaining data may differ and still count as equal. */
  readonly margin: number;
  readonly progressTimeoutS: number;
  readonly switchoverTimeoutS: number;
  /** Weight of the newest sample in the average bandwidth. */
  readonly ewmaAlpha: number;
  readonly precopyPossibleFactor: number;
  readonly patienceDecay: number;
  readonly searchesLocalMinima: boolean;
  readonly completionTimeoutFactor: number;
}

/** How a migration shall be done. */
export interface MigrationSettings {
  /** 0: no limit. */
  readonly bandwidthMiBps: bigint;
  /** 0: not checked. */
  readonly progressTimeoutS: number;
  /** Per 10^9 bytes; 0: not checked. */
  readonly completionTimeoutS: number;
  readonly maxDowntimeMs: number;
  readonly isUnsafe: boolean;
  readonly autoConverges: boolean;
  readonly allowsPostCopy: boolean;
  /** The guest may be paused, or switched to post-copy, when it takes too long. */
  readonly allowsDisruption: boolean;
  readonly parallelConnections: number | undefined;
  readonly compression: 'zstd' | undefined;
  /** A compression method that this launcher does not know, and does without. */
  readonly unknownCompression: string | undefined;
  readonly stall: StallSettings | undefined;
}

function mibPerSecond(text: string): bigint {
  if (parseQuantity(text) === undefined) throw new LauncherError('BadRequest', BAD_QUANTITY);
  const bytes = quantityValue(text);
  return bytes <= 0n ? 0n : (bytes + MIB - 1n) / MIB;
}

function stallOf(options: NonNullable<MigrationOptions['StallDetectorOptions']>): StallSettings {
  return {
    margin: options.StallMargin,
    progressTimeoutS: Number(options.StallProgressTimeout),
    switchoverTimeoutS: Number(options.SwitchoverTimeout),
    ewmaAlpha: options.EwmaAlpha,
    precopyPossibleFactor: options.PrecopyPossibleFactor,
    patienceDecay: options.PatienceWindowDecayFactor,
    searchesLocalMinima: options.SearchLocalMinima,
    completionTimeoutFactor: options.CompletionTimeoutFactor,
  };
}

function settingsOf(options: MigrationOptions): MigrationSettings {
  const { Compression: compression, ParallelMigrationThreads: threads, StallDetectorOptions: stall } = options;
  const isUnknown = compression != null && compression !== ZSTD && compression !== 'none';
  return {
    bandwidthMiBps: mibPerSecond(options.Bandwidth),
    progressTimeoutS: Number(options.ProgressTimeout),
    completionTimeoutS: Number(options.CompletionTimeoutPerGiB),
    maxDowntimeMs: Number(options.MaxDowntimeMs),
    isUnsafe: options.UnsafeMigration,
    autoConverges: options.AllowAutoConverge,
    allowsPostCopy: options.AllowPostCopy,
    allowsDisruption: options.AllowWorkloadDisruption,
    parallelConnections: threads == null ? undefined : Number(threads),
    compression: compression === ZSTD ? ZSTD : undefined,
    unknownCompression: isUnknown ? compression : undefined,
    stall: stall == null ? undefined : stallOf(stall),
  };
}

/**
 * Reads the options of a migration request. Keys that an old handler does not send take the value that Go gives them;
 * `null` as a whole, which crashes a Go launcher, is a request without a wish.
 *
 * @throws {LauncherError} `BadRequest` with KubeVirt's text
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go getMigrationOptionsFromRequest
 */
export function readMigrationSettings(bytes: Uint8Array): MigrationSettings {
  const text = Buffer.from(bytes).toString('utf8');
  if (text === '') {
    throw new LauncherError('BadRequest', 'migration options object not present in command server request');
  }
  try {
    return settingsOf(migrationOptions.parse(text));
  } catch (caught) {
    const what = 'no valid migration options object present in command server request: ';
    throw new LauncherError('BadRequest', what + textOf(caught), { cause: caught });
  }
}
