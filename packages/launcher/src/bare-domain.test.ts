import { parseDomainJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { runVector } from './testing/run-vector.ts';
import type { VectorStep } from './testing/vector-types.ts';

const UID = '6f0a0000-0000-4000-8000-000000000001';
/** Devices as libvirt may show them, for want of anything to say. */
const DEVICES = ['interface', 'disk', 'hostdev', 'controller', 'memory', 'channel', 'graphics', 'video', 'filesystem'];
const XML = `<domain><name>ns1_vm</name><devices>${DEVICES.map((name) => `<${name}/>`).join('')}</devices></domain>`;
const OPTIONS = {
  MigrateVirtualMachine: { Bandwidth: '0' },
  FinalizeVirtualMachineMigration: { interfaceMigration: { default: { Method: 'link-refresh' } } },
} as const;

const vmi = {
  metadata: { name: 'vm', namespace: 'ns1', uid: UID },
  spec: { domain: { devices: {} } },
  status: { migrationState: { migrationUid: 'm' } },
};
const domainStats = { 'net.count': 1, 'block.count': 1, 'vcpu.current': 1, 'vcpu.maximum': 1 };

function play(domain: { readonly state: number; readonly reason: number }, steps: readonly VectorStep[]) {
  return runVector({ title: '', vmi, domain: { ...domain, xml: XML }, domainStats, config: { notifier: true }, steps });
}

test('FM-5.8 a domain whose devices say nothing of themselves is told, described and counted', async () => {
  const rpcs: readonly VectorStep[] = [
    'GetDomain',
    'GetDomainStats',
    'PauseVirtualMachine',
    'UnpauseVirtualMachine',
  ].map((rpc) => ({ rpc }));
  const { steps } = await play({ state: 1, reason: 1 }, [{ event: 'lifecycle', id: 0, detail: 0, ms: 200 }, ...rpcs]);
  expect(steps.map(({ error }) => error)).toEqual(steps.map(() => undefined));
  const told = steps[0]?.trace.find(({ notify }) => notify === 'HandleDomainEvent');
  const { Devices } = (told?.['domainJSON'] as { Spec: { Devices: Record<string, readonly object[] | null> } }).Spec;
  // What handlers written in Go read without looking is there.
  expect(Devices['Interfaces']).toMatchObject([{ Alias: {}, MAC: {} }]);
  expect(Devices['Disks']).toMatchObject([{ Alias: {} }]);
  const { domain } = steps[1]?.response as { readonly domain: string };
  expect(parseDomainJson(domain).Spec.Devices.Disks).toHaveLength(1);
});

test('FM-5.8 a disk error of a domain whose disks have no names is told nevertheless', async () => {
  const answers = { GetDiskErrors: [{ result: [{ Disk: 'vda', Error: 1 }] }] };
  const { steps } = await play({ state: 3, reason: 5 }, [{ event: 'lifecycle', id: 3, detail: 2, ms: 200, answers }]);
  const told = steps[0]?.trace.filter(({ notify }) => notify !== undefined && notify !== 'connect');
  expect(told?.map(({ notify }) => notify)).toEqual(['HandleK8sEvent', 'HandleDomainEvent']);
});

test('FM-5.8 a domain whose devices say nothing of themselves is migrated, and its migration finalized', async () => {
  const steps = Object.entries(OPTIONS).map(([rpc, options]): VectorStep => ({
    rpc,
    options: options as object,
    ms: 500,
  }));
  const result = await play({ state: 1, reason: 1 }, steps);
  expect(result.steps.map(({ error }) => error)).toEqual([undefined, undefined]);
  const calls = result.steps.flatMap(({ trace }) => trace.map(({ libvirt }) => libvirt));
  expect(calls).toContain('MigrateToURI3');
  // There is no link by that name.
  expect(calls).not.toContain('UpdateDeviceFlags');
});
