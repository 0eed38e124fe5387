import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import { emptyDomainSpec } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DomainJob } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import type { FakeClock } from '../testing/fake-clock.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import type { BackupManager, BackupManagerDeps } from './manager.ts';
import { createBackupManager } from './manager.ts';
import type { BackupStart } from './request.ts';

const vmi = { metadata: { namespace: 'ns', name: 'vm' } } as Vmi;
const ref = { name: 'ns_vm', uuid: 'u', id: 1 };
const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const NO_JOB: DomainJob = { type: 0, params: new Map() };
const completed: DomainJob = { type: 3, params: new Map([['operation', 9]]) };
const running: DomainJob = { type: 2, params: new Map([['operation', 9]]) };

let root: string;
let request: BackupStart;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-backup-'));
  request = {
    ...{ name: 'b1', startTime: '2000-01-01T10:20:30Z', mode: 'Push', targetPath: root },
    ...{ incremental: undefined, skipQuiesce: false },
  };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

interface World {
  readonly clock: FakeClock;
  readonly backups: BackupManager;
  readonly metadata: ReturnType<typeof createMetadataCache>;
  readonly done: string[];
}

function createWorld(
  libvirt: Partial<BackupManagerDeps['libvirt']> = {},
  freezer: Partial<BackupManagerDeps['freezer']> = {},
): World {
  const done: string[] = [];
  const note = (what: string) => () => {
    done.push(what);
    return Promise.resolve();
  };
  const metadata = createMetadataCache();
  const clock = createFakeClock(Date.parse('2000-01-01T11:00:00Z'));
  const backups = createBackupManager({
    libvirt: {
      lookupDomainByName: () => Promise.resolve(ref),
      getXml: () => Promise.resolve(''),
      backupBegin: note('begin'),
      abortJob: note('abort'),
      getJobStats: () => Promise.resolve(NO_JOB),
      monitorCommand: () => Promise.resolve('{"return":[]}'),
      ...libvirt,
    },
    freezer: { freeze: note('freeze'), thaw: note('thaw'), ...freezer },
    exporter: { start: note('export'), stop: () => void done.push('stop export') },
    metadata,
    parseSpec: () => emptyDomainSpec(),
    clock,
    log,
    nbdSocket: '/run/nbd',
  });
  return { backups, metadata, done, clock };
}

test('the guest stands still while the backup begins, in a directory of its own', async () => {
  const { backups, metadata, done } = createWorld();
  await backups.start(vmi, request, log);
  expect(done).toEqual(['freeze', 'begin', 'thaw']);
  expect(readdirSync(join(root, 'vm'))).toEqual(['b1-2000-01-01_10-20-30']);
  expect(metadata.backup.load()).toMatchObject({ Name: 'b1', QuiesceStatus: 'Succeeded', Volumes: 'null' });
});

test('without quiesce the guest is left alone', async () => {
  const { backups, metadata, done } = createWorld();
  await backups.start(vmi, { ...request, skipQuiesce: true }, log);
  expect(done).toEqual(['begin']);
  expect(metadata.backup.load()).toMatchObject({ SkipQuiesce: true, QuiesceStatus: 'Skipped' });
});

test('two requests at one time begin one backup', async () => {
  const { backups, done } = createWorld();
  await Promise.all([backups.start(vmi, request, log), backups.start(vmi, request, log)]);
  expect(done.filter((what) => what === 'begin')).toHaveLength(1);
});

test('a guest that cannot be thawed does not fail the backup, which tells of it', async () => {
  const { backups, metadata } = createWorld({}, { thaw: () => Promise.reject(new Error('no agent')) });
  await backups.start(vmi, request, log);
  const BackupMsg = 'Failed to unfreeze filesystem after backup completion';
  expect(metadata.backup.load()).toMatchObject({ Name: 'b1', BackupMsg });
});

test('what libvirt refuses leaves no directory and can be asked for again', async () => {
  const refuse = () => Promise.reject(new LibvirtCallError(1, 10, 'no'));
  const { backups, metadata, done } = createWorld({ backupBegin: refuse });
  await expect(backups.start(vmi, request, log)).rejects.toThrow("virError(Code=1, Domain=10, Message='no')");
  expect(done).toEqual(['freeze', 'thaw']);
  expect(existsSync(join(root, 'vm/b1-2000-01-01_10-20-30'))).toBe(false);
  expect(metadata.backup.load()).toEqual({});
  await expect(backups.start(vmi, request, log)).rejects.toThrow('no');
});

test('a target that is no directory', async () => {
  const { backups } = createWorld();
  const lost = { ...request, targetPath: '/dev/null' };
  const text = 'error creating dir for backup: mkdir /dev/null: not a directory';
  await expect(backups.start(vmi, lost, log)).rejects.toThrow(text);
});

test('the end that came while libvirt was away is found out', async () => {
  const { backups, metadata } = createWorld({
    getJobStats: (_domain, flags) => Promise.resolve(flags === 1 ? completed : NO_JOB),
  });
  await backups.start(vmi, request, log);
  await backups.catchUp('ns_vm');
  expect(metadata.backup.load()).toMatchObject({
    ...{ Completed: true, Failed: false, BackupMsg: '', EndTimestamp: '2000-01-01T11:00:00Z' },
  });
});

test('an end that nobody remembers is a failure, not a backup that runs for ever', async () => {
  const { backups, metadata } = createWorld();
  await backups.start(vmi, request, log);
  await backups.catchUp('ns_vm');
  const BackupMsg = 'the end of the backup was missed while libvirt was away';
  expect(metadata.backup.load()).toMatchObject({ Completed: true, Failed: true, BackupMsg });
});

test.each<[string, Partial<BackupManagerDeps['libvirt']>]>([
  ['that runs still', { getJobStats: () => Promise.resolve(running) }],
  ['of which libvirt cannot tell', { getJobStats: () => Promise.reject(new LibvirtCallError(38, 10, 'no')) }],
])('a backup %s is not ended by a restored connection', async (_title, libvirt) => {
  const { backups, metadata } = createWorld(libvirt);
  await backups.start(vmi, request, log);
  await backups.catchUp('ns_vm');
  expect(metadata.backup.load()?.EndTimestamp).toBeUndefined();
});

test('a backup that is about to begin is not ended by a restored connection', async () => {
  const begun = Promise.withResolvers<undefined>();
  const { backups, metadata } = createWorld({ backupBegin: () => begun.promise });
  const starting = backups.start(vmi, { ...request, skipQuiesce: true }, log);
  await backups.catchUp('ns_vm');
  begun.resolve(undefined);
  await starting;
  expect(metadata.backup.load()?.EndTimestamp).toBeUndefined();
});

test('an end without a backup is passed over', async () => {
  const { backups, metadata } = createWorld();
  await backups.complete(ref, new Map([['operation', 9]]));
  expect(metadata.backup.load()).toBeUndefined();
});

test('the end is told when the image is whole, which it is not before QEMU has closed it', async () => {
  const open = JSON.stringify({ return: [{ file: join(root, 'vm/b1-2000-01-01_10-20-30/b1-data.qcow2') }] });
  let closesAfter = 3;
  const { backups, metadata, clock } = createWorld({
    getJobStats: () => Promise.resolve(completed),
    monitorCommand: () => Promise.resolve(closesAfter-- > 0 ? open : '{"return":[{"file":"/data.img"}]}'),
  });
  await backups.start(vmi, request, log);
  const telling = backups.complete(ref, new Map([['operation', 9]]));
  await clock.settle();
  expect(metadata.backup.load()?.Completed).toBeUndefined();
  await clock.until(telling);
  expect(closesAfter).toBeLessThan(0);
  expect(metadata.backup.load()).toMatchObject({ Completed: true, Failed: false });
});

test('an image that QEMU never closes does not hold up the end for ever', async () => {
  const open = JSON.stringify({ return: [{ file: join(root, 'vm/b1-2000-01-01_10-20-30/b1-data.qcow2') }] });
  const { backups, metadata, clock } = createWorld({
    getJobStats: () => Promise.resolve(completed),
    monitorCommand: () => Promise.resolve(open),
  });
  await backups.start(vmi, request, log);
  await clock.until(backups.complete(ref, new Map([['operation', 9]])));
  expect(metadata.backup.load()?.Completed).toBe(true);
});

test('the running backup is exported until it ends, and no other', async () => {
  const { backups, done } = createWorld();
  const exported = { ...request, address: 'a:1', serverName: 'a', certificate: '', key: '', ca: '' };
  await expect(backups.export(exported, log)).rejects.toThrow('could not find ongoing backup');
  await backups.start(vmi, { ...request, mode: 'Pull', skipQuiesce: true }, log);
  await backups.export(exported, log);
  await expect(backups.export({ ...exported, name: 'b2' }, log)).rejects.toThrow(
    'requested backup differs from ongoing one',
  );
  await backups.complete(ref, new Map([['operation', 9]]));
  expect(done).toEqual(['begin', 'export', 'stop export']);
  await expect(backups.export(exported, log)).rejects.toThrow('backup already completed');
});

test.each([
  ['was ended by whoever pulled it is whole', true, { isFailed: false, message: '' }],
  ['nobody has ended was cut off', false, { isFailed: true, message: 'the VM ended before its backup' }],
])('a pulled backup that %s, when the VM ends next', async (_title, isEnded, { isFailed, message }) => {
  const { backups, metadata } = createWorld({ getJobStats: () => Promise.resolve(running) });
  await backups.start(vmi, { ...request, mode: 'Pull' }, log);
  if (isEnded) await backups.abort(vmi, request, log);
  backups.endWithVm();
  expect(metadata.backup.load()).toMatchObject({ Completed: true, BackupMsg: message });
  expect(metadata.backup.load()?.Failed ?? false).toBe(isFailed);
});
