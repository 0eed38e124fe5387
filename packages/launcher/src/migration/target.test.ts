import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { emptyDomainSpec, parseVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createPausedSet } from '../domain/paused-set.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createPluggedDisks } from './plugged-disks.ts';
import { createMigrationRecord } from './record.ts';
import { streamSocket } from './sockets.ts';
import { createMigrationTarget } from './target.ts';
import type { MigrationTarget, MigrationTargetDeps } from './target.ts';

const UID = '6f0a0000-0000-4000-8000-000000000001';
const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const qemuUser = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
let dir: string;
let targets: MigrationTarget[];

beforeEach(() => {
  // Sockets have names of less than 108 bytes.
  dir = mkdtempSync(join(tmpdir(), 'vt-'));
  targets = [];
});

afterEach(() => {
  for (const target of targets) target.stop();
  rmSync(dir, { recursive: true });
});

function vmiOf(status: object, annotations: Record<string, string> = {}): Vmi {
  const metadata = { name: 'vm', namespace: 'ns1', uid: UID, annotations };
  const migrationState = { migrationUid: 'mig-1' };
  const whole = { migrationState, migrationTransport: 'Unix', ...status };
  return parseVmiJson(JSON.stringify({ metadata, spec: { domain: { devices: {} } }, status: whole }));
}

function world(changes: Partial<MigrationTargetDeps> = {}) {
  const metadata = createMetadataCache();
  const paused = createPausedSet();
  const steps: string[] = [];
  const step = (name: string) => (): Promise<void> => Promise.resolve(void steps.push(name));
  const target = createMigrationTarget(
    {
      preparation: {
        async prepareTarget() {
          await step('prepare')();
          return { spec: emptyDomainSpec(), prepareSeed: step('seed') };
        },
      },
      record: createMigrationRecord(metadata, createFakeClock(0)),
      ...{ metadata, paused, pluggedDisks: createPluggedDisks(dir) },
      hookServer: { start: step('hook'), stop: () => undefined },
      readPodCpuSet: () => Promise.resolve([0]),
      onDefine: async (_vmi, spec) => {
        await step('define')();
        return spec;
      },
      ...changes,
    },
    { shareDir: dir, qemuUser, renamesTaps: false, replacesVgpu: false },
  );
  targets.push(target);
  return { target, steps, metadata, paused };
}

const ALL = ['prepare', 'hook', 'seed', 'define'];

describe('the preparation of a target', () => {
  test('FM-8.2 is made in full at each call, also after one that failed in the middle', async () => {
    let isBroken = true;
    const { target, steps } = world({
      onDefine: (_vmi, spec) => {
        steps.push('define');
        return isBroken ? Promise.reject(new Error('sidecar')) : Promise.resolve(spec);
      },
    });
    await expect(target.prepare(vmiOf({}), undefined, log)).rejects.toThrow('sidecar');
    isBroken = false;
    await target.prepare(vmiOf({}), undefined, log);
    await target.prepare(vmiOf({}), undefined, log);
    expect(steps).toEqual([...ALL, ...ALL, ...ALL]);
  });

  test('notes whose VM comes, and where QEMU may listen', async () => {
    const { target, metadata } = world();
    await target.prepare(vmiOf({}), undefined, log);
    expect(metadata.uid.load()).toBe(UID);
    expect(metadata.migration.load()).toEqual({
      UID: 'mig-1',
      StartTimestamp: '1970-01-01T00:00:00Z',
      Mode: 'PreCopy',
    });
    expect(metadata.gracePeriod.load()?.DeletionGracePeriodSeconds).toBe(30);
    expect(statSync(join(dir, 'migrationproxy')).isDirectory()).toBe(true);
  });

  test('takes the migration by the name that its own side has', async () => {
    const { target, metadata } = world();
    const migrationState = { migrationUid: 'x', sourceState: {}, targetState: { migrationUID: 'own' } };
    await target.prepare(vmiOf({ migrationState }), undefined, log);
    expect(metadata.migration.load()?.UID).toBe('own');
  });

  test.each([
    [undefined, true, false],
    ['BlockMigration', true, true],
  ])('leads sources that know TCP only to QEMU (%s)', async (migrationMethod, hasMemory, hasDisks) => {
    const { target } = world();
    const vmi = vmiOf({ migrationTransport: '', ...(migrationMethod === undefined ? {} : { migrationMethod }) });
    await target.prepare(vmi, undefined, log);
    await target.prepare(vmi, undefined, log);
    expect(existsSync(streamSocket(dir, UID, 'memory'))).toBe(hasMemory);
    expect(existsSync(streamSocket(dir, UID, 'disks'))).toBe(hasDisks);
  });

  test('leaves QEMU’s own sockets alone', async () => {
    const { target } = world();
    await target.prepare(vmiOf({}), undefined, log);
    expect(existsSync(streamSocket(dir, UID, 'memory'))).toBe(false);
  });

  test('waits for the plugged disks of a VM from another cluster', async () => {
    const { target } = world();
    const migrationState = { migrationUid: 'x', sourceState: {}, targetState: {} };
    const volumeStatus = [{ name: 'data', target: '', hotplugVolume: {} }];
    const vmi = vmiOf({ migrationState, volumeStatus });
    await expect(target.prepare(vmi, undefined, log)).rejects.toThrow('found 0 hotplugged disks files, expected 1');
    writeFileSync(join(dir, 'data.img'), '');
    await target.prepare(vmi, undefined, log);
    rmSync(join(dir, 'data.img'));
    mkdirSync(join(dir, 'data'));
    await target.prepare(vmi, undefined, log);
  });

  test('waits also for plugged disks that only the specification tells of, and counts each once', async () => {
    const { target } = world();
    const state = { migrationUid: 'x', sourceState: {}, targetState: {} };
    const volumeStatus = [{ name: 'data', target: '', hotplugVolume: {} }];
    const vmi = vmiOf({ migrationState: state, volumeStatus });
    const plugged = { claimName: 'c', hotpluggable: true };
    const volumes = [
      { name: 'data', persistentVolumeClaim: plugged },
      { name: 'logs', dataVolume: { name: 'c', hotpluggable: true } },
      { name: 'root', persistentVolumeClaim: { claimName: 'c' } },
      { name: 'dump', memoryDump: plugged },
    ];
    const whole: Vmi = { ...vmi, spec: { ...vmi.spec, volumes } };
    writeFileSync(join(dir, 'data.img'), '');
    await expect(target.prepare(whole, undefined, log)).rejects.toThrow('found 1 hotplugged disks files, expected 2');
    writeFileSync(join(dir, 'logs.img'), '');
    await target.prepare(whole, undefined, log);
  });

  test('a paused VM stays paused', async () => {
    const { target, paused } = world();
    await target.prepare(vmiOf({ conditions: [{ type: 'Paused', status: 'False' }] }), undefined, log);
    expect(paused.uids()).toEqual([]);
    await target.prepare(vmiOf({ conditions: [{ type: 'Paused', status: 'True' }] }), undefined, log);
    expect(paused.uids()).toEqual([UID]);
  });

  test('is refused when the migration is over', async () => {
    const { target, metadata } = world();
    await target.prepare(vmiOf({}), undefined, log);
    metadata.migration.update((migration) => ({ ...migration, EndTimestamp: '1970-01-01T00:00:05Z' }));
    await expect(target.prepare(vmiOf({}), undefined, log)).rejects.toThrow('migration job mig-1 already executed');
  });
});
