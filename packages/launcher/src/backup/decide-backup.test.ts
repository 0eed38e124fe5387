import type { BackupMetadata } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { decideOutcome, decideStart, findObstacle } from './decide-backup.ts';

const identity = { name: 'b1', startTime: '2000-01-01T10:20:30Z' };
const running: BackupMetadata = { Name: 'b1', StartTimestamp: '2000-01-01T10:20:30Z' };
const ended: BackupMetadata = { ...running, EndTimestamp: '2000-01-01T10:30:00Z', Completed: true };

describe('a backup is started', () => {
  test.each<[string, BackupMetadata | undefined, 'start' | 'running']>([
    ['when there was none', undefined, 'start'],
    ['after one that failed to start', {}, 'start'],
    ['not twice', running, 'running'],
    ['after another one ended', { ...ended, Name: 'b0' }, 'start'],
    ['after one of its name that ended earlier', { ...ended, StartTimestamp: '2000-01-01T10:20:29Z' }, 'start'],
  ])('%s', (_title, last, expected) => {
    expect(decideStart(last, identity)).toBe(expected);
  });

  test('not beside another one', () => {
    const text = 'backup b0 already in progress, need to wait for completion';
    expect(() => decideStart({ ...running, Name: 'b0' }, identity)).toThrow(text);
    expect(() => decideStart({ Name: 'b0' }, identity)).toThrow(text);
  });

  test('not again', () => {
    expect(() => decideStart(ended, identity)).toThrow(
      'backup b1 that started at 2000-01-01 10:20:30 +0000 UTC already executed, ' +
        'finished at 2000-01-01 10:30:00 +0000 UTC, completed: true',
    );
  });
});

test.each<[string, BackupMetadata | undefined]>([
  ['could not find ongoing backup', undefined],
  ['could not find ongoing backup', {}],
  ['backup did not start yet', { Name: 'b1' }],
  ['requested backup differs from ongoing one', { ...running, Name: 'b2' }],
  ['requested backup differs from ongoing one', { ...running, StartTimestamp: '2000-01-01T10:20:31Z' }],
  ['backup already completed', ended],
])('%s', (text, metadata) => {
  expect(findObstacle(metadata, identity)).toBe(text);
});

test('the backup that runs is the one that is meant', () => {
  expect(findObstacle(running, identity)).toBeUndefined();
});

test.each<[string, string, number, string | undefined, boolean, string]>([
  ['completed', 'Push', 3, undefined, false, ''],
  ['aborted', 'Push', 5, undefined, true, 'backup aborted'],
  ['aborted, in libvirt’s words', 'Push', 5, 'Operation canceled', true, 'backup aborted: Operation canceled'],
  ['pulled and ended', 'Pull', 5, 'Operation canceled', false, ''],
  ['pulled and ended with words of its own', 'Pull', 5, 'disk on fire', false, 'disk on fire'],
  ['failed', 'Pull', 4, 'No space left on device', true, 'No space left on device'],
  ['failed without a word', 'Push', 4, undefined, true, 'unknown failure reason'],
  ['ended in another way', 'Push', 0, 'x', true, 'unexpected job completion type: 0: x'],
])('a job that %s', (_title, mode, type, errorText, isFailed, message) => {
  expect(decideOutcome(mode, type, errorText)).toEqual({ isFailed, message });
});
