import { expect, test } from 'vitest';
import { LauncherError } from '../errors.ts';
import { migrationFlags } from './flags.ts';
import { readMigrationSettings } from './settings.ts';

const read = (options: unknown) => readMigrationSettings(Buffer.from(JSON.stringify(options)));

test('an old handler sends few keys: disruption is what it says of post-copy', () => {
  const old = { Bandwidth: '64Mi', ProgressTimeout: 150, CompletionTimeoutPerGiB: 150, AllowPostCopy: true };
  expect(read(old)).toMatchObject({
    bandwidthMiBps: 64n,
    progressTimeoutS: 150,
    completionTimeoutS: 150,
    allowsPostCopy: true,
    allowsDisruption: true,
    parallelConnections: undefined,
    compression: undefined,
    stall: undefined,
  });
});

test.each([
  ['0', 0n],
  ['1', 1n],
  ['1Mi', 1n],
  ['1M', 1n],
  ['1048577', 2n],
  ['1500m', 1n],
  ['-5', 0n],
])('a bandwidth of %s is %s MiB/s', (text, mib) => {
  expect(read({ Bandwidth: text }).bandwidthMiBps).toBe(mib);
});

test.each([
  [null, undefined, undefined],
  ['none', undefined, undefined],
  ['zstd', 'zstd', undefined],
  ['lz9', undefined, 'lz9'],
])('compression %s', (given, used, unknown) => {
  expect(read({ Compression: given })).toMatchObject({ compression: used, unknownCompression: unknown });
});

test('null as a whole, which crashes a Go launcher, is a request without a wish', () => {
  expect(read(null)).toMatchObject({ bandwidthMiBps: 0n, progressTimeoutS: 0, stall: undefined });
});

test.each([
  ['', 'migration options object not present in command server request'],
  ['{', 'no valid migration options object present in command server request: unexpected end of JSON input'],
  [
    '{"Bandwidth":"fast"}',
    'no valid migration options object present in command server request: quantities must match the regular ' +
      "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
])('options %j are refused in KubeVirt’s words', (text, message) => {
  expect(() => readMigrationSettings(Buffer.from(text))).toThrow(new LauncherError('BadRequest', message));
});

test('flags follow the settings and the guest', () => {
  const none = { copiesDisks: false, isPausedByUser: false };
  expect(migrationFlags(read({}), none)).toBe(11);
  expect(migrationFlags(read({}), { copiesDisks: true, isPausedByUser: true })).toBe(11 + 128 + 32);
  const all = {
    UnsafeMigration: true,
    AllowAutoConverge: true,
    AllowPostCopy: true,
    ParallelMigrationThreads: 4,
    Compression: 'zstd',
  };
  expect(migrationFlags(read(all), none)).toBe(174_603);
});
