import { parseTime } from '@virtwire/vm-model';
import { backupOptions } from '@virtwire/vm-model/payloads';
import type { BackupOptions } from '@virtwire/vm-model/payloads';
import { LauncherError, textOf } from '../errors.ts';

/** Which backup is meant: two with one name and start are the same. */
export interface BackupIdentity {
  readonly name: string;
  /** RFC 3339 in UTC, whole seconds. */
  readonly startTime: string;
}

/** A backup to begin. */
export interface BackupStart extends BackupIdentity {
  readonly mode: 'Push' | 'Pull';
  /** The backup goes below it: into a directory of the VM and the backup. */
  readonly targetPath: string;
  /** Checkpoint since which changes count; without it everything is copied. */
  readonly incremental: string | undefined;
  readonly skipQuiesce: boolean;
}

/** A pull backup to show to somebody outside the pod. */
export interface BackupExport extends BackupIdentity {
  /** `host:port` that takes the tunnel. */
  readonly address: string;
  /** Name that its certificate has to show. */
  readonly serverName: string;
  /** PEM. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
  /** PEM. */
  readonly ca: string;
}

/** What BackupVirtualMachine was asked to do. */
export type BackupCommand =
  | ({ readonly kind: 'start' } & BackupStart)
  | ({ readonly kind: 'abort' } & BackupIdentity)
  | ({ readonly kind: 'export' } & BackupExport);

const NO_OPTIONS = 'backup options object not present in command server request';
const BAD_OPTIONS = 'no valid backup options object present in command server request: ';
const NO_START_TIME = "backup start time wasn't provided";
const NO_PULL = 'can only export Pull mode backup';

function refuse(text: string): never {
  throw new LauncherError('BadRequest', text);
}

function requireText(value: string, missing: string): string {
  return value === '' ? refuse(missing) : value;
}

function decode(bytes: Uint8Array): BackupOptions {
  if (bytes.length === 0) refuse(NO_OPTIONS);
  const json = Buffer.from(bytes).toString('utf8');
  // A launcher written in Go crashes on null.
  if (json.trim() === 'null') refuse(`${BAD_OPTIONS}null`);
  try {
    return backupOptions.parse(json);
  } catch (caught) {
    throw new LauncherError('BadRequest', `${BAD_OPTIONS}${textOf(caught)}`, { cause: caught });
  }
}

/** The name becomes part of paths below the target. */
function requireName(name: string): string {
  if (name.includes('/')) refuse(`backup name ${JSON.stringify(name)} is not valid`);
  return name;
}

function requireStartTime(time: string | null): string {
  return time ?? refuse(NO_START_TIME);
}

function parseStart(options: BackupOptions): BackupCommand {
  const { mode, backupName, backupStartTime, targetPath, incremental, skipQuiesce } = options;
  if (mode !== 'Push' && mode !== 'Pull') refuse('unknown backup mode: only Push and Pull are supported');
  return {
    kind: 'start',
    mode,
    targetPath: requireText(targetPath, "backup targetPath wasn't provided"),
    name: requireName(backupName),
    startTime: requireStartTime(backupStartTime),
    incremental: incremental === '' ? undefined : incremental,
    skipQuiesce,
  };
}

function parseExport(options: BackupOptions): BackupCommand {
  if (options.mode !== 'Pull') refuse(NO_PULL);
  return {
    kind: 'export',
    address: requireText(options.exportServerAddr, "backup export server address wasn't provided"),
    serverName: requireText(options.exportServerName, "backup export server name wasn't provided"),
    name: requireText(options.backupName, "backup name wasn't provided"),
    startTime: requireStartTime(options.backupStartTime),
    certificate: requireText(options.backupCert, "backup certificate wasn't provided"),
    key: requireText(options.backupKey, "backup key wasn't provided"),
    ca: requireText(options.caCert, "backup export server CA cert wasn't provided"),
  };
}

/**
 * Reads and checks the options of BackupVirtualMachine; the checks come in the order in which callers know them.
 *
 * @param bytes BackupOptions as JSON.
 * @throws {LauncherError} `BadRequest` with KubeVirt's words.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go BackupVirtualMachine
 */
export function parseBackupRequest(bytes: Uint8Array): BackupCommand {
  const options = decode(bytes);
  if (options.cmd === 'Start') return parseStart(options);
  if (options.cmd === 'Export') return parseExport(options);
  if (options.cmd !== 'Abort') refuse('cmd unsupported, backup command only supports start or abort');
  return { kind: 'abort', name: options.backupName, startTime: options.backupStartTime ?? '' };
}

/** A time as it stands in names of checkpoints and directories: `2000-01-01_10-20-30`. */
export function renderNameTime(startTime: string): string {
  return startTime.slice(0, 19).replace('T', '_').replaceAll(':', '-');
}

/** A time as Go prints it in texts: `2000-01-01 10:20:30 +0000 UTC`. */
export function renderGoTime(time: string): string {
  return `${new Date(parseTime(time)).toISOString().slice(0, 19).replace('T', ' ')} +0000 UTC`;
}
