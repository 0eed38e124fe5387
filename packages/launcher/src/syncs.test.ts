import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap, vmiRequest } from '@virtwire/shared-proto';
import { parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createVmi, eventually, startLauncherOnFake } from './testing/launcher-on-fake.ts';
import type { LauncherOnFake } from './testing/launcher-on-fake.ts';

/** Calls that take no lock of the domain and change nothing. */
const READS = ['DOMAIN_GET_STATE', 'DOMAIN_GET_XML_DESC', 'DOMAIN_LOOKUP_BY_NAME'];
const SYNCS = 1_000;
const MIB = 1 << 20;

/** The VMI with a claim of some size as its disk. */
function requestWithDisk(storage: string, phase: string): ReturnType<typeof vmiRequest> {
  const vmi = JSON.parse(renderVmiJson(createVmi())) as {
    spec: { volumes?: object[]; domain: { devices: { disks?: object[] } } };
    status: object;
  };
  vmi.spec.domain.devices.disks = [{ name: 'data', disk: { bus: 'virtio' } }];
  vmi.spec.volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'claim' } }];
  const claim = { claimName: 'claim', volumeMode: 'Filesystem', capacity: { storage }, requests: { storage } };
  vmi.status = {
    phase,
    volumeStatus: [{ name: 'data', target: '', persistentVolumeClaimInfo: { ...claim, filesystemOverhead: '0' } }],
  };
  return vmiRequest(renderVmiJson(parseVmiJson(JSON.stringify(vmi))));
}

async function startWithDisk(): Promise<LauncherOnFake> {
  const launcher = await startLauncherOnFake();
  const dir = join(launcher.root, 'private/vmi-disks/data');
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'disk.img'), '');
  truncateSync(join(dir, 'disk.img'), MIB);
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(requestWithDisk('1Mi', 'Scheduled')));
  await eventually('Running', () => launcher.events.at(-1)?.domain.Status.Status === 'Running');
  return launcher;
}

test(`FM-4.7 ${SYNCS} syncs of an unchanged VM read, ask nothing about its disks, and tell nobody anything`, async () => {
  await using launcher = await startWithDisk();
  const { client, daemon } = launcher;
  const request = requestWithDisk('1Mi', 'Running');
  unwrap(await client.syncVirtualMachine(request));
  const arrivals = launcher.lines.filter(({ msg }) => String(msg).endsWith(' received')).length;
  await eventually('the events of the start', () => launcher.events.length >= arrivals);
  const told = launcher.events.length;
  const made = daemon.calls.length;
  for (let i = 0; i < SYNCS; i++) unwrap(await client.syncVirtualMachine(request));
  const calls = daemon.calls.slice(made).map(({ procedure }) => procedure);
  expect([...new Set(calls)].sort()).toEqual(READS);
  expect(calls.length).toBeLessThan((READS.length + 1) * SYNCS);
  expect(launcher.events.length).toBe(told);
});

test('FM-4.7 syncs do not wait for storage that answers after half a minute, unless a disk has grown', async () => {
  await using launcher = await startWithDisk();
  const { client, daemon } = launcher;
  unwrap(await client.syncVirtualMachine(requestWithDisk('1Mi', 'Running')));
  const asked = daemon.callsOf('DOMAIN_GET_BLOCK_INFO').length;
  daemon.faults.add({ kind: 'slow', delayMs: 30_000 }, { procedure: 'DOMAIN_GET_BLOCK_INFO' });
  for (let i = 0; i < 3; i++) unwrap(await client.syncVirtualMachine(requestWithDisk('1Mi', 'Running')));
  expect(daemon.callsOf('DOMAIN_GET_BLOCK_INFO').length).toBe(asked);
  const growing = client.syncVirtualMachine(requestWithDisk('2Mi', 'Running'), { timeoutMs: 5_000 });
  await eventually('the question', () => daemon.callsOf('DOMAIN_GET_BLOCK_INFO').length === asked + 1);
  client.close();
  expect((await growing).ok).toBe(false);
});

test('FM-4.8 a sync outlives its handler’s patience; the next waits for it, and nothing is started twice', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, request } = launcher;
  launcher.startQemu();
  daemon.faults.add({ kind: 'slow', delayMs: 1_500 }, { procedure: 'DOMAIN_CREATE_WITH_FLAGS' });
  const impatient = await client.syncVirtualMachine(request, { timeoutMs: 700 });
  expect(impatient.ok ? '' : impatient.error.code).toBe('DeadlineExceeded');
  await eventually('the start', () => daemon.callsOf('DOMAIN_CREATE_WITH_FLAGS').length === 1);
  const defines = daemon.callsOf('DOMAIN_DEFINE_XML_FLAGS').length;
  const [second, third] = await Promise.all([client.syncVirtualMachine(request), client.syncVirtualMachine(request)]);
  unwrap(second);
  unwrap(third);
  expect(daemon.callsOf('DOMAIN_CREATE_WITH_FLAGS').length).toBe(1);
  expect(daemon.callsOf('DOMAIN_DEFINE_XML_FLAGS').length).toBe(defines);
  expect(launcher.lines.filter(({ msg }) => msg === 'Domain started.').length).toBe(1);
});

test('FM-4.8 syncs that pile up behind one that hangs are answered busy', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, request } = launcher;
  launcher.startQemu();
  daemon.faults.add({ kind: 'slow', delayMs: 2_000 }, { procedure: 'DOMAIN_CREATE_WITH_FLAGS' });
  const all = Array.from({ length: 60 }, () => client.syncVirtualMachine(request));
  const results = await Promise.all(all);
  const refusals = results.flatMap((result) => (result.ok ? [] : [result.error.detail]));
  expect(new Set(refusals)).toEqual(new Set(['the domain is busy, and too many requests wait for it already']));
  expect(results.filter(({ ok }) => ok).length).toBeGreaterThan(30);
  expect(daemon.callsOf('DOMAIN_CREATE_WITH_FLAGS').length).toBe(1);
});
