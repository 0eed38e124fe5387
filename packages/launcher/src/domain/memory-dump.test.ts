import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import type { Vmi } from '@virtwire/vm-model';
import { expect, onTestFinished, test } from 'vitest';
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

/** A dump that has written half of its file when `dumped` settles. */
function halfDump(dumped: () => Promise<void>) {
  const dir = mkdtempSync(join(tmpdir(), 'virtwire-dump-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'a.memory.dump');
  const metadata = createMetadataCache();
  const clock = createFakeClock(0);
  const libvirt = {
    lookupDomainByName: () => Promise.resolve({ name: 'ns_vm', uuid: '1', id: 1 }),
    coreDump: () => {
      writeFileSync(path, 'half');
      return dumped();
    },
  };
  const dumper = createMemoryDumper({ libvirt, metadata, clock });
  dumper.start(vmi, path, log);
  const ended = async () => {
    await expect.poll(() => metadata.memoryDump.load()?.Completed).toBe(true);
    return metadata.memoryDump.load();
  };
  return { path, dumper, clock, ended, metadata };
}

test('a dump that failed leaves no half file that could be taken for a whole one', async () => {
  const { path, ended } = halfDump(() => Promise.reject(new LibvirtCallError(9, 10, 'no space')));
  expect(await ended()).toMatchObject({ Failed: true, FailureReason: expect.stringContaining('no space') as string });
  expect(existsSync(path)).toBe(false);
});

test('a dump that went well leaves its file', async () => {
  const { path, ended } = halfDump(() => Promise.resolve());
  expect(await ended()).toMatchObject({ Failed: false });
  expect(existsSync(path)).toBe(true);
});

test('a dump on storage that hangs has failed when its VM has ended, and a late answer changes nothing', async () => {
  const hung = Promise.withResolvers<undefined>();
  const { path, dumper, clock, ended, metadata } = halfDump(() => hung.promise);
  await expect.poll(() => existsSync(path)).toBe(true);
  await clock.until(dumper.settle());
  const failure = 'Domain memory dump failed: the VM has ended';
  expect(await ended()).toMatchObject({ Failed: true, FailureReason: failure });
  expect(existsSync(path)).toBe(false);
  hung.resolve(undefined);
  await clock.settle();
  expect(metadata.memoryDump.load()).toMatchObject({ Failed: true, FailureReason: failure });
});

test('nothing is waited for when there is no dump', async () => {
  const clock = createFakeClock(0);
  const libvirt = { lookupDomainByName: () => Promise.reject(new Error('no')), coreDump: () => Promise.resolve() };
  await createMemoryDumper({ libvirt, metadata: createMetadataCache(), clock }).settle();
  expect(clock.now()).toBe(0);
});
