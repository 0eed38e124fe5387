import { unwrap } from '@virtwire/shared-proto';
import { parseDomainJson } from '@virtwire/vm-model';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { createMetadataCache } from '../metadata/cache.ts';
import type { LauncherOnFake } from '../testing/launcher-on-fake.ts';
import { createVmi, eventually, startLauncherOnFake } from '../testing/launcher-on-fake.ts';
import { createDefiner } from './define.ts';
import { LibvirtCallError } from './libvirt-port.ts';

const REFUSED = { kind: 'error', code: 1, domain: 10, message: 'no' } as const;
const DEFINE = { procedure: 'DOMAIN_DEFINE_XML_FLAGS' } as const;

const uids = ({ events }: LauncherOnFake): Set<string | undefined> =>
  new Set(events.map(({ domain }) => domain.ObjectMeta.uid));

async function uidAfterRefusal(former: string | undefined): Promise<string | undefined> {
  const { uid } = createMetadataCache();
  uid.set(former);
  const seen: (string | undefined)[] = [];
  const libvirt = {
    defineXml: () => {
      seen.push(uid.load());
      return Promise.reject(new LibvirtCallError(1, 10, 'no'));
    },
    getXml: () => Promise.resolve('<domain/>'),
  };
  const parseSpec = (): never => {
    throw new Error('nothing was defined');
  };
  const definer = createDefiner({ libvirt, metadata: { uid }, parseSpec, onDefine: () => Promise.resolve('') });
  const vmi = createVmi();
  const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
  const spec = { Memory: { Value: 1, Unit: 'b' }, Devices: {} } as Parameters<typeof definer.define>[1];
  await expect(definer.define(vmi, spec, log)).rejects.toThrow('no');
  expect(seen).toEqual([vmi.metadata.uid]);
  return uid.load();
}

test('an event that arrives during a slow define carries the UID of its VM', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, request, vmi } = launcher;
  launcher.startQemu();
  daemon.faults.add({ kind: 'slow', delayMs: 1_000 }, DEFINE);
  const syncing = client.syncVirtualMachine(request);
  await eventually('the first event', () => launcher.events.length > 0);
  expect(launcher.lines.some(({ msg }) => msg === 'Domain defined.')).toBe(false);
  unwrap(await syncing);
  expect(uids(launcher)).toEqual(new Set([vmi.metadata.uid]));
});

test('a domain that libvirt refuses leaves no UID behind, or the one that was known', async () => {
  expect(await uidAfterRefusal(undefined)).toBeUndefined();
  expect(await uidAfterRefusal('another')).toBe('another');
});

test('a domain whose further definition is refused keeps its UID, also when the next sync starts it', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, request, vmi } = launcher;
  launcher.startQemu();
  daemon.faults.add(REFUSED, { ...DEFINE, after: 1 });
  expect((await client.syncVirtualMachine(request)).ok).toBe(false);
  expect(daemon.callsOf('DOMAIN_DEFINE_XML_FLAGS').length).toBe(2);
  unwrap(await client.syncVirtualMachine(request));
  await eventually('Running', () => launcher.events.at(-1)?.domain.Status.Status === 'Running');
  expect(uids(launcher)).toEqual(new Set([vmi.metadata.uid]));
  const shown = parseDomainJson(unwrap(await client.getDomain()).domain);
  expect(shown.Spec.Metadata.KubeVirt.UID).toBe(vmi.metadata.uid);
});
