import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HandlerError } from '../errors.ts';
import { recordedLog } from '../testing/silent-log.ts';
import { openGhostRecords } from './ghost-records.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync('/tmp/vh-records-');
});
afterEach(() => rmSync(dir, { recursive: true }));

const socketFile = '/pods/p1/volumes/kubernetes.io~empty-dir/sockets/launcher-sock';
const record = { name: 'vm1', namespace: 'ns1', socketFile, uid: 'u1' };
const open = (lines: Record<string, unknown>[] = []) => openGhostRecords(dir, '/pods', recordedLog(lines));
const folder = (): string => join(dir, 'ghost-records');

test('a record is the same file as KubeVirt writes, and is read back', () => {
  open().add(record);
  const file = join(folder(), 'u1');
  expect(readFileSync(file, 'utf8')).toBe(`{"name":"vm1","namespace":"ns1","socketFile":"${socketFile}","uid":"u1"}`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder())).toEqual(['u1']);
  expect(open().get('ns1/vm1')).toEqual(record);
});

test.each([
  ['another UID', { ...record, uid: 'u2' }, 'can not add ghost record when entry already exists with differing UID'],
  [
    'another socket',
    { ...record, socketFile: socketFile.replace('p1', 'p2') },
    'can not add ghost record when entry already exists with differing socket file location',
  ],
  ['no name', { ...record, name: '' }, 'can not add ghost record without name'],
  [
    'a socket outside the pods directory (FM-3.3)',
    { ...record, name: 'x', socketFile: '/etc/x' },
    '/etc/x is not below /pods',
  ],
])('refuses %s', (_title, other, text) => {
  const records = open();
  records.add(record);
  expect(() => records.add(other)).toThrow(text);
  expect(() => records.add(other)).toThrow(HandlerError);
});

test('adding the same record again writes nothing', () => {
  const records = open();
  records.add(record);
  rmSync(join(folder(), 'u1'));
  records.add(record);
  expect(existsSync(join(folder(), 'u1'))).toBe(false);
});

test('removing takes the file away, and only for the UID that it belongs to', () => {
  const records = open();
  records.add(record);
  records.remove('ns1/vm1', 'other');
  expect(records.get('ns1/vm1')).toEqual(record);
  records.remove('ns1/vm1', 'u1');
  records.remove('ns1/vm1', 'u1');
  expect(records.list()).toEqual([]);
  expect(existsSync(join(folder(), 'u1'))).toBe(false);
});

test.each([
  ['empty', ''],
  ['cut', '{"name":"vm1","names'],
  ['no object', '[1]'],
  ['a field missing', '{"name":"vm1","namespace":"ns1"}'],
  ['a foreign socket', JSON.stringify({ ...record, socketFile: '/pods/../etc/s' })],
])('FM-3.2 a damaged record (%s) is moved aside, and the others are read', (_title, text) => {
  mkdirSync(folder(), { recursive: true });
  writeFileSync(join(folder(), 'bad'), text);
  writeFileSync(join(folder(), 'u1'), JSON.stringify({ ...record, extra: true }));
  const lines: Record<string, unknown>[] = [];
  expect(open(lines).list()).toEqual([{ ...record, extra: true }]);
  expect(readFileSync(join(dir, 'ghost-records-damaged/bad'), 'utf8')).toBe(text);
  expect(lines.some((line) => line['msg'] === 'Unable to read ghost record checkpoint, bad')).toBe(true);
  expect(readdirSync(folder())).toEqual(['u1']);
});

test('what a killed writer left behind is removed', () => {
  mkdirSync(folder(), { recursive: true });
  writeFileSync(join(folder(), '.u1.77.tmp'), '{');
  open();
  expect(readdirSync(folder())).toEqual([]);
});
