import { flag, list, omitEmpty, text, time } from './field-types.ts';
import { type ObjectOf, payload, struct } from './struct.ts';

const some = omitEmpty(text);
const moment = omitEmpty(time);

const optionFields = {
  backupName: some,
  /** `Start`, `Abort` or `Export`. */
  cmd: some,
  /** `Push` or `Pull`. */
  mode: some,
  backupStartTime: moment,
  incremental: some,
  targetPath: some,
  skipQuiesce: omitEmpty(flag),
  exportServerAddr: some,
  exportServerName: some,
  backupKey: some,
  backupCert: some,
  caCert: some,
};
const volume = struct(
  'BackupVolumeInfo',
  { volumeName: text, diskTarget: text, dataEndpoint: some, mapEndpoint: some },
  'v1alpha1.BackupVolumeInfo',
);
const checkpointFields = { name: some, creationTime: moment, volumes: omitEmpty(list(volume)) };

/** `options` of BackupVirtualMachine. */
export type BackupOptions = ObjectOf<typeof optionFields>;
/** `checkpoint` of RedefineCheckpoint. */
export type BackupCheckpoint = ObjectOf<typeof checkpointFields>;

/** `options` of BackupVirtualMachine. Times are whole seconds: a backup is known by its name and second. */
export const backupOptions = payload(struct('BackupOptions', optionFields, 'v1alpha1.BackupOptions'));
/** `checkpoint` of RedefineCheckpoint. */
export const backupCheckpoint = payload(struct('BackupCheckpoint', checkpointFields, 'v1alpha1.BackupCheckpoint'));
