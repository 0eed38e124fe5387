import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { LauncherError } from '../errors.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createMigrationRecord } from './record.ts';

function world() {
  const lines: string[] = [];
  const clock = createFakeClock(Date.parse('2000-01-01T00:00:00.250Z'));
  const metadata = createMetadataCache();
  const log = createLogger('virt-launcher', { destination: { write: (line) => void lines.push(line) } });
  return { record: createMigrationRecord(metadata, clock), migration: () => metadata.migration.load(), log, lines };
}

test.each<[what: string, failure: string | undefined, words: string]>([
  ['that went well', undefined, 'failed: false, abortStatus: '],
  ['that failed', 'no', 'failed: true, abortStatus: '],
])('a migration %s is not done again, and the refusal tells how it ended', (_what, failure, words) => {
  const { record, log } = world();
  record.start('m');
  record.finish('m', failure, log);
  const ended = 'finished at 2000-01-01 00:00:00.25 +0000 UTC';
  const text = `migration job m already executed, ${ended}, ${words}`;
  expect(() => record.start('m')).toThrow(new LauncherError('MigrationFailed', text));
});

test('one that was given up says so, too', () => {
  const { record, log } = world();
  record.start('m');
  record.setAbort('Succeeded');
  record.finish('m', 'given up', log);
  expect(() => record.start('m')).toThrow(/, failed: true, abortStatus: Succeeded$/);
});

test('the end of a migration that another has replaced leaves the record of the other', () => {
  const { record, migration, log, lines } = world();
  record.start('first');
  record.start('second');
  const before = migration();
  record.finish('first', 'late', log);
  expect(migration()).toEqual(before);
  expect(migration()).toMatchObject({ UID: 'second', Mode: 'PreCopy' });
  expect(lines.join()).toContain('migration first has a result already');
  record.finish('second', undefined, log);
  expect(migration()).toMatchObject({ UID: 'second', EndTimestamp: '2000-01-01T00:00:00Z' });
});
