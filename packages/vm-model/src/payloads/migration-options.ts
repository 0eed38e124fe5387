import { parseJson } from '../json/lossless.ts';
import { flag, float64, int64, pointer, text, uint } from './field-types.ts';
import { type ObjectOf, type Payload, payload, struct } from './struct.ts';

const stallDetectorFields = {
  StallMargin: float64,
  StallProgressTimeout: int64,
  SwitchoverTimeout: int64,
  EwmaAlpha: float64,
  PrecopyPossibleFactor: float64,
  PatienceWindowDecayFactor: float64,
  SearchLocalMinima: flag,
  CompletionTimeoutFactor: float64,
};
const fields = {
  /** A quantity: `64Mi`, `0` for no limit. */
  Bandwidth: { ...text, zero: () => '0' },
  ProgressTimeout: int64,
  CompletionTimeoutPerGiB: int64,
  MaxDowntimeMs: int64,
  UnsafeMigration: flag,
  AllowAutoConverge: flag,
  AllowPostCopy: flag,
  ParallelMigrationThreads: pointer(uint),
  AllowWorkloadDisruption: flag,
  StallDetectorOptions: pointer(struct('StallDetectorOptions', stallDetectorFields)),
  Compression: pointer(text),
};
const whole = payload(struct('MigrationOptions', fields, 'cmdclient.MigrationOptions'));

/** `options` of MigrateVirtualMachine. */
export type MigrationOptions = ObjectOf<typeof fields>;

/**
 * `options` of MigrateVirtualMachine. Handlers before v1.5 do not say whether the workload may be disrupted: then what
 * they say of post-copy counts.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/cmd-client MigrationOptions; wire rule 10.5
 */
export const migrationOptions: Payload<MigrationOptions> = {
  ...whole,
  parse: (source) => {
    const options = whole.parse(source);
    const given = parseJson(source);
    const isSaid = typeof given === 'object' && given !== null && Object.hasOwn(given, 'AllowWorkloadDisruption');
    return isSaid ? options : { ...options, AllowWorkloadDisruption: options.AllowPostCopy };
  },
};
