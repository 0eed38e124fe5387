import { createLogger } from '@virtwire/telemetry';
import type { Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { LibvirtCallError } from './libvirt-port.ts';
import { createMemoryDumper } from './memory-dump.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const vmi = { metadata: { namespace: 'ns', name: 'vm' } } as Vmi;

/** Asks for a dump whose domain cannot be looked up. */
async function dumpWithout(failure: LibvirtCallError) {
  const metadata = createMetadataCache();
  const clock = createFakeClock(0);
  const libvirt = { lookupDomainByName: () => Promise.reject(failure), coreDump: () => Promise.resolve() };
  createMemoryDumper({ libvirt, metadata, clock }).start(vmi, '/none/memory.dump', log);
  await clock.settle();
  return metadata.memoryDump.load();
}

test('a dump that begins while libvirt is away has failed, and is not waited for', async () => {
  expect(await dumpWithout(new LibvirtCallError(38, 7, 'the connection was lost'))).toMatchObject({
    ...{ FileName: 'memory.dump', Completed: true, Failed: true },
    FailureReason: "Domain memory dump failed: virError(Code=38, Domain=7, Message='the connection was lost')",
  });
});

test('a dump without a domain has no end', async () => {
  const begun = { FileName: 'memory.dump', StartTimestamp: '1970-01-01T00:00:00Z' };
  expect(await dumpWithout(new LibvirtCallError(42, 10, 'no domain'))).toEqual(begun);
});
