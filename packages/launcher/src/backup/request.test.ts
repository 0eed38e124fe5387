import { expect, test } from 'vitest';
import { parseBackupRequest } from './request.ts';

const start = {
  cmd: 'Start',
  mode: 'Push',
  backupName: 'b1',
  backupStartTime: '2000-01-01T10:20:30Z',
  targetPath: '/t',
};
const exported = {
  ...{ ...start, cmd: 'Export', mode: 'Pull', exportServerAddr: 'a:1', exportServerName: 'a', backupCert: 'c' },
  ...{ backupKey: 'k', caCert: 'ca' },
};
const parse = (options: unknown) => parseBackupRequest(Buffer.from(JSON.stringify(options)));

test('a start, whose time counts in whole seconds of UTC', () => {
  expect(parse({ ...start, backupStartTime: '2000-01-01T12:20:30.9+02:00', incremental: '' })).toEqual({
    ...{ kind: 'start', mode: 'Push', name: 'b1', startTime: '2000-01-01T10:20:30Z' },
    ...{ targetPath: '/t', incremental: undefined, skipQuiesce: false },
  });
});

test('an abort needs nothing but to be the running one', () => {
  expect(parse({ cmd: 'Abort' })).toEqual({ kind: 'abort', name: '', startTime: '' });
});

test('an export', () => {
  expect(parse(exported)).toEqual({
    ...{ kind: 'export', name: 'b1', startTime: '2000-01-01T10:20:30Z' },
    ...{ address: 'a:1', serverName: 'a', certificate: 'c', key: 'k', ca: 'ca' },
  });
});

const without = (field: keyof typeof exported): object => ({ ...exported, [field]: undefined });

test.each<[string, unknown]>([
  ['no valid backup options object present in command server request: null', null],
  ['cmd unsupported, backup command only supports start or abort', {}],
  ['unknown backup mode: only Push and Pull are supported', { ...start, mode: 'push' }],
  ["backup targetPath wasn't provided", { ...start, targetPath: null }],
  ["backup start time wasn't provided", { ...start, backupStartTime: null }],
  ['backup name "../b1" is not valid', { ...start, backupName: '../b1' }],
  ['can only export Pull mode backup', { ...exported, mode: 'Push' }],
  ["backup export server address wasn't provided", without('exportServerAddr')],
  ["backup export server name wasn't provided", without('exportServerName')],
  ["backup name wasn't provided", without('backupName')],
  ["backup start time wasn't provided", without('backupStartTime')],
  ["backup certificate wasn't provided", without('backupCert')],
  ["backup key wasn't provided", without('backupKey')],
  ["backup export server CA cert wasn't provided", without('caCert')],
])('refused: %s', (text, options) => {
  expect(() => parse(options)).toThrow(text);
});

test('options that are missing or no JSON', () => {
  const bytes = (text: string) => () => parseBackupRequest(Buffer.from(text));
  expect(bytes('')).toThrow('backup options object not present in command server request');
  expect(bytes('{')).toThrow(
    'no valid backup options object present in command server request: unexpected end of JSON input',
  );
});
