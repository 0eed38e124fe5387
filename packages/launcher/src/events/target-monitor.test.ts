import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import type { DomainJob, LibvirtPort } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createTargetMonitor } from './target-monitor.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const DOMAIN = { name: 'ns_vm', uuid: 'u', id: 1 };
const incoming = (operation: number): DomainJob => ({ type: 2, params: new Map([['operation', operation]]) });
const refused = new LibvirtCallError(84, 10, 'migration statistics are available only on the source host');

type Ports = Pick<LibvirtPort, 'lookupDomainByName' | 'getJobInfo' | 'getJobStats'>;

function world(changes: Partial<Ports>) {
  const clock = createFakeClock(0);
  const metadata = createMetadataCache();
  const libvirt: Ports = {
    lookupDomainByName: () => Promise.resolve(DOMAIN),
    getJobInfo: () => Promise.resolve({ type: 0 }),
    getJobStats: () => Promise.resolve(incoming(4)),
    ...changes,
  };
  createTargetMonitor(libvirt, metadata, clock, log).start('ns_vm');
  return { clock, ended: () => metadata.migration.load()?.EndTimestamp };
}

test('the migration is over when libvirt has no job', async () => {
  const { clock, ended } = world({});
  await clock.settle();
  expect(ended()).toBe('1970-01-01T00:00:00Z');
});

test.each<[string, () => Promise<{ type: number }>]>([
  ['refuses to tell of the job', () => Promise.reject(refused)],
  ['tells of a job that comes in', () => Promise.resolve({ type: 2 })],
])('it is not while libvirt %s', async (_title, busy) => {
  let looks = 0;
  const { clock, ended } = world({ getJobInfo: () => (looks++ < 20 ? busy() : Promise.resolve({ type: 0 })) });
  await clock.advance(1_900);
  expect(ended()).toBeUndefined();
  await clock.advance(200);
  expect(ended()).toBe('1970-01-01T00:00:02Z');
});

test('a job of another kind does not count', async () => {
  const { clock, ended } = world({
    getJobInfo: () => Promise.resolve({ type: 2 }),
    getJobStats: () => Promise.resolve(incoming(9)),
  });
  await clock.settle();
  expect(ended()).toBeDefined();
});

test('FM-8.5 the guest runs here: after 18 s it is over whatever libvirt says', async () => {
  const { clock, ended } = world({ getJobInfo: () => Promise.reject(refused) });
  await clock.advance(17_000);
  expect(ended()).toBeUndefined();
  await clock.advance(2_000);
  expect(ended()).toBe('1970-01-01T00:00:18Z');
});

test.each([
  ['a guest that ran here and is gone', new LibvirtCallError(42, 10, 'Domain not found')],
  ['a domain that cannot be looked up', new LibvirtCallError(38, 10, 'Connection reset by peer')],
])('%s is not waited for 18 s: its migration is over after four looks', async (_what, failure) => {
  let looks = 0;
  const lookupDomainByName = (): Promise<never> => Promise.reject((looks++, failure));
  const { clock, ended } = world({ lookupDomainByName });
  await clock.advance(5_900);
  expect(ended()).toBeUndefined();
  await clock.advance(200);
  expect([ended(), looks]).toEqual(['1970-01-01T00:00:06Z', 4]);
});

test('a look that fails once does not end a migration whose job is there at the next', async () => {
  let looks = 0;
  const lookupDomainByName = (): Promise<typeof DOMAIN> =>
    looks++ === 0 ? Promise.reject(new LibvirtCallError(38, 10, 'lost')) : Promise.resolve(DOMAIN);
  const { clock, ended } = world({ lookupDomainByName, getJobInfo: () => Promise.resolve({ type: 2 }) });
  await clock.advance(6_500);
  expect(ended()).toBeUndefined();
});

test('an end that is known already stays', async () => {
  const clock = createFakeClock(60_000);
  const metadata = createMetadataCache();
  metadata.migration.store({ UID: 'm', EndTimestamp: '1970-01-01T00:00:07Z' });
  const libvirt: Ports = {
    lookupDomainByName: () => Promise.resolve(DOMAIN),
    getJobInfo: () => Promise.resolve({ type: 0 }),
    getJobStats: () => Promise.resolve(incoming(4)),
  };
  createTargetMonitor(libvirt, metadata, clock, log).start('ns_vm');
  await clock.settle();
  expect(metadata.migration.load()?.EndTimestamp).toBe('1970-01-01T00:00:07Z');
});
