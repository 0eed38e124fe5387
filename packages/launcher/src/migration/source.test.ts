import { parseDomainXml, parseVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { createLogger } from '@virtwire/telemetry';
import { describe, expect, test } from 'vitest';
import { DEFAULT_DOMAIN_PATHS } from '../converter/circumstances.ts';
import type { DomainJob } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { createMutex } from '../domain/mutex.ts';
import { createPausedSet } from '../domain/paused-set.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createMigrationRecord } from './record.ts';
import { readMigrationSettings } from './settings.ts';
import { createMigrationSource } from './source.ts';
import type { MigrationSourceDeps } from './source.ts';

const UID = '6f0a0000-0000-4000-8000-000000000001';
const DOMAIN = { name: 'ns1_vm', uuid: UID, id: 1 };
const XML = '<domain><name>ns1_vm</name><devices></devices></domain>';
const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const running = (remaining: number): DomainJob => ({
  type: 2,
  params: new Map([['data_remaining', BigInt(remaining)]]),
});
const options = (more: object = {}) =>
  readMigrationSettings(Buffer.from(JSON.stringify({ Bandwidth: '0', CompletionTimeoutPerGiB: 10, ...more })));
const cancelled = new LibvirtCallError(78, 10, 'operation aborted: migration out job: canceled by client');
const never = new Promise<never>(() => undefined);

function vmiOf(migrationUid = 'mig-1', annotations: Record<string, string> = {}): Vmi {
  const metadata = { name: 'vm', namespace: 'ns1', uid: UID, annotations };
  const spec = { domain: { devices: {}, memory: { guest: '1G' } } };
  return parseVmiJson(JSON.stringify({ metadata, spec, status: { migrationState: { migrationUid } } }));
}

type Changes = Partial<MigrationSourceDeps['libvirt']> & Partial<MigrationSourceDeps['calls']>;

function world(changes: Changes = {}) {
  const clock = createFakeClock(Date.parse('2000-01-01T00:00:00Z'));
  const metadata = createMetadataCache();
  const paused = createPausedSet();
  const migration = Promise.withResolvers<undefined>();
  const calls: string[] = [];
  const noted = (call: string) => (): Promise<void> => Promise.resolve(void calls.push(call));
  const ports = {
    lookupDomainByName: () => Promise.resolve(DOMAIN),
    getState: () => Promise.resolve({ state: 1, reason: 1 }),
    getXml: () => Promise.resolve(XML),
    getJobInfo: () => Promise.resolve({ type: 2 }),
    getJobStats: () => Promise.resolve(running(1_000)),
    abortJob: () => {
      calls.push('abort');
      migration.reject(cancelled);
      return Promise.resolve();
    },
    suspend: noted('suspend'),
    detachDevice: noted('detach'),
    migrateToUri: () => {
      calls.push('migrate');
      return migration.promise;
    },
    startPostCopy: noted('postCopy'),
    setMaxDowntime: noted('downtime'),
    onMigrationIteration: () => Promise.resolve(() => Promise.resolve()),
    onDeviceRemoved: () => Promise.resolve(() => Promise.resolve()),
    ...changes,
  };
  const source = createMigrationSource(
    {
      ...{ libvirt: ports, calls: ports, paused, clock, mutex: createMutex() },
      record: createMigrationRecord(metadata, clock),
      images: { info: () => Promise.reject(new Error('no image')) },
      parseSpec: parseDomainXml,
      ephemeralBytes: () => Promise.resolve(0n),
    },
    { shareDir: '/var/run/kubevirt', paths: DEFAULT_DOMAIN_PATHS, targetHasHooks: false },
  );
  return {
    source,
    clock,
    calls,
    paused,
    finish: () => migration.resolve(undefined),
    result: () => metadata.migration.load(),
  };
}

/** A VMI with more in its status than the migration's own UID. */
function vmiWith(status: object): Vmi {
  const vmi = vmiOf();
  return parseVmiJson(JSON.stringify({ ...vmi, status: { ...vmi.status, ...status } }));
}

describe('a migration', () => {
  test('between clusters goes by the UID that its source knows it by', async () => {
    const { source, clock, result } = world();
    const migrationState = { migrationUid: 'here', sourceState: { migrationUID: 'there' } };
    source.migrate(vmiWith({ migrationState }), options(), log);
    await clock.settle();
    expect(result()).toMatchObject({ UID: 'there' });
  });

  test('waits for a backup that runs, and for no other', async () => {
    const { source, clock, calls } = world();
    const backup = (backupStatus: object): Vmi => vmiWith({ changedBlockTracking: { backupStatus } });
    const running = backup({ backupName: 'b', completed: false });
    const words = 'cannot migrate VMI until backup b is completed';
    expect(() => source.migrate(running, options(), log)).toThrow(words);
    source.migrate(backup({ backupName: 'b', completed: true }), options(), log);
    await clock.settle();
    expect(calls).toEqual(['migrate']);
  });

  test('FM-8.1 that is asked for twice runs once', async () => {
    const { source, clock, calls } = world();
    source.migrate(vmiOf(), options(), log);
    source.migrate(vmiOf(), options(), log);
    await clock.settle();
    expect(calls).toEqual(['migrate']);
  });

  test('FM-8.1 is cancelled once; where none runs, nothing is', async () => {
    const { source, clock, calls } = world({ abortJob: () => Promise.resolve(void calls.push('abort')) });
    source.cancel(vmiOf(), log);
    source.migrate(vmiOf(), options(), log);
    await clock.settle();
    source.cancel(vmiOf(), log);
    source.cancel(vmiOf(), log);
    await clock.settle();
    source.cancel(vmiOf(), log);
    await clock.settle();
    expect(calls).toEqual(['migrate', 'abort']);
  });

  test('that is cancelled while it is prepared never begins', async () => {
    const state = Promise.withResolvers<{ state: number; reason: number }>();
    const { source, clock, calls, result } = world({ getState: () => state.promise });
    source.migrate(vmiOf(), options(), log);
    await clock.settle();
    source.cancel(vmiOf(), log);
    expect(result()).toMatchObject({ AbortStatus: 'Aborting' });
    state.resolve({ state: 1, reason: 1 });
    await clock.until(source.settled());
    expect(calls).toEqual([]);
    const FailureReason = 'Live migration has been aborted';
    expect(result()).toMatchObject({ Failed: true, FailureReason, AbortStatus: 'Succeeded' });
  });

  test('that waits for an earlier one is cancelled with it', async () => {
    const { source, clock, calls, result } = world();
    source.migrate(vmiOf('mig-1'), options(), log);
    await clock.settle();
    source.migrate(vmiOf('mig-2'), options(), log);
    source.cancel(vmiOf('mig-2'), log);
    await clock.until(source.settled());
    expect(calls).toEqual(['migrate', 'abort']);
    expect(result()).toMatchObject({ UID: 'mig-2', Failed: true, AbortStatus: 'Succeeded' });
  });

  test('FM-8.4 has its result when libvirt returns, before anybody who waits for it goes on', async () => {
    const { source, clock, finish, result } = world();
    source.migrate(vmiOf(), options(), log);
    await clock.settle();
    const seen = source.settled().then(() => result());
    finish();
    expect(await seen).toEqual({
      ...{ UID: 'mig-1', Mode: 'PreCopy' },
      ...{ StartTimestamp: '2000-01-01T00:00:00Z', EndTimestamp: '2000-01-01T00:00:00Z' },
    });
    expect(source.isActive()).toBe(false);
  });

  test('FM-8.4 keeps its first result and its start; another one starts anew', async () => {
    const { source, clock, finish, result } = world();
    source.migrate(vmiOf(), options(), log);
    await clock.advance(1_500);
    finish();
    await clock.advance(5_000);
    const text =
      'migration job mig-1 already executed, finished at 2000-01-01 00:00:01.5 +0000 UTC, failed: false, abortStatus: ';
    expect(() => source.migrate(vmiOf(), options(), log)).toThrow(text);
    expect(result()).toMatchObject({ StartTimestamp: '2000-01-01T00:00:00Z', EndTimestamp: '2000-01-01T00:00:01Z' });
    source.migrate(vmiOf('mig-2'), options(), log);
    await clock.settle();
    expect(result()).toMatchObject({ UID: 'mig-2', StartTimestamp: '2000-01-01T00:00:06Z' });
  });

  test('FM-8.6 meets its limits whether or not libvirt answers', async () => {
    const { source, clock, calls, result } = world({ getJobStats: () => never });
    source.migrate(vmiOf(), options({ ProgressTimeout: 3 }), log);
    await clock.advance(3_900);
    expect(calls).toEqual(['migrate']);
    await clock.advance(500);
    expect(calls).toEqual(['migrate', 'abort']);
    expect(result()).toMatchObject({ Failed: true, FailureReason: 'Live migration has been aborted' });
  });

  test('FM-8.6 numbers that leave out what remains are no progress', async () => {
    let looks = 0;
    const silent: DomainJob = { type: 2, params: new Map([['data_total', 5n]]) };
    const getJobStats = (): Promise<DomainJob> => Promise.resolve(looks++ === 0 ? running(1_000) : silent);
    const { source, clock, calls } = world({ getJobStats });
    source.migrate(vmiOf(), options({ ProgressTimeout: 3 }), log);
    await clock.advance(6_000);
    expect(calls).toEqual(['migrate', 'abort']);
  });

  test('FM-8.6 gives up an abort that libvirt does not answer after 30 s, and tries again', async () => {
    let asked = 0;
    const { source, clock, result } = world({
      getJobInfo: () => {
        asked++;
        return never;
      },
    });
    source.migrate(vmiOf(), options({ CompletionTimeoutPerGiB: 0 }), log);
    await clock.advance(1_000);
    source.cancel(vmiOf(), log);
    await clock.advance(29_000);
    expect(result()).toMatchObject({ AbortStatus: 'Aborting' });
    await clock.advance(1_000);
    expect(result()).toMatchObject({ AbortStatus: 'Failed' });
    source.cancel(vmiOf(), log);
    await clock.settle();
    expect(asked).toBe(2);
  });

  test('a guest that was paused to get through goes on after a failure, and the next sync may resume it', async () => {
    const failure = Promise.withResolvers<never>();
    const { source, clock, calls, paused, result } = world({
      getJobStats: () => Promise.resolve(running(1_000_000 - calls.length)),
      migrateToUri: () => failure.promise,
    });
    source.migrate(vmiOf(), options({ AllowWorkloadDisruption: true }), log);
    await clock.advance(12_000);
    expect(calls).toEqual(['suspend']);
    expect(paused.uids()).toEqual([UID]);
    expect(result()).toMatchObject({ Mode: 'Paused' });
    failure.reject(new Error('the target is gone'));
    await clock.settle();
    expect(paused.uids()).toEqual([]);
  });

  test('a pause that the user asked for outlives the failure', async () => {
    const failure = Promise.withResolvers<never>();
    const { source, clock, paused } = world({ migrateToUri: () => failure.promise });
    paused.add(UID);
    source.migrate(vmiOf(), options({ AllowWorkloadDisruption: true }), log);
    await clock.advance(12_000);
    failure.reject(new Error('the target is gone'));
    await clock.settle();
    expect(paused.uids()).toEqual([UID]);
  });

  test('gives its numbers while it runs', async () => {
    const { source, clock, finish } = world();
    expect(source.numbers()).toBeUndefined();
    source.migrate(vmiOf(), options(), log);
    await clock.advance(400);
    expect(source.numbers()).toMatchObject({ dataRemaining: 1_000n });
    finish();
    await clock.advance(400);
    expect(source.numbers()).toBeUndefined();
  });

  test.each<[string, Changes, string]>([
    [
      'without a domain',
      { lookupDomainByName: () => Promise.reject(new Error('gone')) },
      'migration monitor failed to look up domain: gone',
    ],
    [
      'without its description',
      { getXml: (_domain, flags) => (flags === 8 ? Promise.reject(new Error('busy')) : Promise.resolve(XML)) },
      'error encountered while generating migration parameters: busy',
    ],
  ])('%s fails with a reason', async (_title, changes, reason) => {
    const { source, clock, result } = world(changes);
    source.migrate(vmiOf(), options(), log);
    await clock.settle();
    expect(result()).toMatchObject({ Failed: true, FailureReason: reason });
  });

  test('fails where a test of the cluster wants it', async () => {
    const { source, clock, calls, result } = world();
    source.migrate(vmiOf('mig-1', { 'kubevirt.io/func-test-force-launcher-migration-failure': '' }), options(), log);
    await clock.settle();
    expect(calls).toEqual([]);
    expect(result()).toMatchObject({ FailureReason: 'Failed migration to satisfy functional test condition' });
  });
});
