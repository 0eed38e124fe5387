import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createGuestTimeSync } from './guest-time.ts';
import { LibvirtCallError } from './libvirt-port.ts';

const vm = { name: 'ns_vm', uuid: '1', id: 1 };
const other = { name: 'ns_vm', uuid: '1', id: 2 };

function start(answer: (attempt: number) => Error | undefined, lookUp = () => Promise.resolve(vm)) {
  const clock = createFakeClock(1_700_000_000_250);
  const set: { readonly id: number; readonly seconds: number; readonly nanoseconds: number }[] = [];
  const lines: string[] = [];
  const write = (line: string): void => void lines.push((JSON.parse(line) as { msg: string }).msg);
  const libvirt = {
    lookupDomainByName: lookUp,
    setTime({ id }: { readonly id: number }, seconds: number, nanoseconds: number): Promise<void> {
      set.push({ id, seconds, nanoseconds });
      const error = answer(set.length);
      return error === undefined ? Promise.resolve() : Promise.reject(error);
    },
  };
  const log = createLogger('virt-launcher', { destination: { write } });
  return { clock, set, lines, sync: createGuestTimeSync(libvirt, clock, log) };
}

const silent = new LibvirtCallError(86, 10, 'agent is not connected');

test('FM-9.7 tries once a second until the agent is back, and sets the time to the millisecond', async () => {
  const { clock, set, lines, sync } = start((attempt) => (attempt < 3 ? silent : undefined));
  sync.start(vm);
  await clock.advance(10_000);
  expect(set.length).toBe(3);
  expect(set[2]).toEqual({ id: 1, seconds: 1_700_000_003, nanoseconds: 250_000_000 });
  expect(lines).toEqual(['guest VM time sync finished successfully']);
});

test('FM-9.7 gives up after a minute', async () => {
  const { clock, set, lines, sync } = start(() => silent);
  sync.start(vm);
  await clock.advance(120_000);
  expect(set.length).toBe(60);
  expect(lines).toEqual(['failed to sync guest time']);
});

test.each([84, 74])('FM-9.7 stops at once when libvirt says that it cannot (%i)', async (code) => {
  const { clock, set, sync } = start(() => new LibvirtCallError(code, 10, 'no'));
  sync.start(vm);
  await clock.advance(120_000);
  expect(set.length).toBe(1);
});

test('FM-9.7 a newer request ends an older one', async () => {
  const { clock, set, sync } = start(() => silent);
  sync.start(vm);
  await clock.advance(1_500);
  sync.start(other);
  await clock.advance(3_000);
  expect(set.map(({ id }) => id)).toEqual([1, 2, 2, 2]);
});

test('a domain that is gone when the guest has gone on is not asked for a minute', async () => {
  const gone = new LibvirtCallError(42, 10, 'Domain not found');
  const { clock, set, lines, sync } = start(
    () => silent,
    () => Promise.reject(gone),
  );
  sync.start(vm);
  await clock.advance(120_000);
  expect(set).toEqual([]);
  expect(lines).toEqual(['failed to sync guest time']);
});
