import * as fs from 'node:fs';
import * as path from 'node:path';
import type { Logger } from '@virtwire/telemetry';
import { errorText, HandlerError } from '../errors.ts';

/** Says that this handler talks, or talked, to the launcher of a VMI. Field names and file names are KubeVirt's. */
export interface GhostRecord {
  readonly name: string;
  readonly namespace: string;
  readonly socketFile: string;
  readonly uid: string;
}

/**
 * Ghost records of this node, one file per VMI UID; the only list of launchers after a restart.
 *
 * A handler of another release reads the very same files.
 */
export interface GhostRecords {
  list(): readonly GhostRecord[];
  get(key: string): GhostRecord | undefined;
  findBySocket(socketFile: string): GhostRecord | undefined;
  /**
   * Writes a record, atomically; nothing happens when the same one is there.
   *
   * @throws {HandlerError} `GhostRecord` for a missing field, another UID or socket under the same key, or a socket
   * outside the pods directory.
   */
  add(record: GhostRecord): void;
  /** Removes the record of a key when it belongs to `uid`; one that is not there is fine. */
  remove(key: string, uid: string): void;
}

const FIELDS = ['name', 'namespace', 'socketFile', 'uid'] as const;

function isRecord(value: unknown): value is GhostRecord {
  if (typeof value !== 'object' || value === null) return false;
  return FIELDS.every((field) => {
    const text = (value as Record<string, unknown>)[field];
    return typeof text === 'string' && text !== '';
  });
}

function isBelow(directory: string, file: string): boolean {
  const relative = path.relative(directory, file);
  return path.isAbsolute(file) && relative !== '' && !relative.startsWith('..');
}

function writeAtomic(directory: string, name: string, text: string): void {
  const temporary = path.join(directory, `.${name}.${process.pid}.tmp`);
  const fd = fs.openSync(temporary, 'w', 0o600);
  try {
    fs.writeFileSync(fd, text);
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
  fs.renameSync(temporary, path.join(directory, name));
}

function keyOf(record: GhostRecord): string {
  return `${record.namespace}/${record.name}`;
}

/** Reads one file; a damaged one is moved aside, so that it is reported once and never stops the handler (FM-3.2). */
function readRecord(directory: string, name: string, podsDir: string, log: Logger): GhostRecord | undefined {
  const file = path.join(directory, name);
  let why: string;
  try {
    const parsed = JSON.parse(fs.readFileSync(file, 'utf8')) as unknown;
    if (isRecord(parsed) && isBelow(podsDir, parsed.socketFile)) return parsed;
    why = isRecord(parsed) ? `socket ${parsed.socketFile} is not below ${podsDir}` : 'a field is missing';
  } catch (error) {
    why = errorText(error);
  }
  log.error({ reason: why }, `Unable to read ghost record checkpoint, ${name}`);
  const aside = `${directory}-damaged`;
  try {
    fs.mkdirSync(aside, { recursive: true, mode: 0o755 });
    fs.renameSync(file, path.join(aside, name));
  } catch (error) {
    log.warn({ reason: errorText(error) }, `failed to move damaged ghost record ${name} aside`);
  }
  return undefined;
}

function load(directory: string, podsDir: string, log: Logger): Map<string, GhostRecord> {
  const records = new Map<string, GhostRecord>();
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    if (entry.name.startsWith('.')) {
      fs.rmSync(path.join(directory, entry.name), { force: true });
      continue;
    }
    if (!entry.isFile()) continue;
    const record = readRecord(directory, entry.name, podsDir, log);
    if (record === undefined) continue;
    records.set(keyOf(record), record);
    log.info(`Added ghost record for key ${keyOf(record)}`);
  }
  return records;
}

function checkAddable(record: GhostRecord, present: GhostRecord | undefined, podsDir: string): void {
  const missing = FIELDS.find((field) => record[field] === '');
  if (missing !== undefined) throw new HandlerError('GhostRecord', `can not add ghost record without ${missing}`);
  if (!isBelow(podsDir, record.socketFile)) {
    throw new HandlerError('GhostRecord', `can not add ghost record: ${record.socketFile} is not below ${podsDir}`);
  }
  if (present === undefined) return;
  const exists = 'can not add ghost record when entry already exists with differing';
  if (present.uid !== record.uid) throw new HandlerError('GhostRecord', `${exists} UID`);
  if (path.normalize(present.socketFile) !== path.normalize(record.socketFile)) {
    throw new HandlerError('GhostRecord', `${exists} socket file location`);
  }
}

/**
 * Opens the ghost records of `<privateDir>/ghost-records` and reads what is there.
 *
 * @param podsDir records whose socket is not below it are refused (FM-3.3).
 * @source KubeVirt v1.9.0 pkg/virt-handler/cache/cache.go:78-226
 */
export function openGhostRecords(privateDir: string, podsDir: string, log: Logger): GhostRecords {
  const directory = path.join(privateDir, 'ghost-records');
  fs.mkdirSync(directory, { recursive: true, mode: 0o755 });
  const records = load(directory, podsDir, log);
  return {
    list: () => [...records.values()],
    get: (key) => records.get(key),
    findBySocket: (socketFile) => [...records.values()].find((record) => record.socketFile === socketFile),
    add({ name, namespace, socketFile, uid }) {
      const record = { name, namespace, socketFile, uid };
      const present = records.get(keyOf(record));
      checkAddable(record, present, podsDir);
      if (present !== undefined) return;
      writeAtomic(directory, uid, JSON.stringify(record));
      records.set(keyOf(record), record);
    },
    remove(key, uid) {
      const record = records.get(key);
      if (record?.uid !== uid || uid === '') return;
      fs.rmSync(path.join(directory, uid), { force: true });
      records.delete(key);
    },
  };
}
