import { expect, test } from 'vitest';
import { createAgentStore } from '../agent/store.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createDomainStats } from './stats.ts';
import type { DomainStatsDeps } from './stats.ts';

const NOWAIT = 2 ** 29;
const domain = { name: 'ns_vm', uuid: 'u', id: 1 };
const never = new Promise<never>(() => undefined);

function world(changes: Partial<DomainStatsDeps['libvirt']>, isMigrating = true) {
  const clock = createFakeClock(0);
  const flags: number[] = [];
  const stats = createDomainStats({
    libvirt: {
      allDomainStats: (_types, given) => {
        flags.push(given);
        return Promise.resolve([{ domain, params: new Map() }]);
      },
      memoryStats: () => Promise.resolve(new Map([[8, 4_096n]])),
      vcpuPinInfo: () => Promise.resolve([[true, false]]),
      ...changes,
    },
    agent: createAgentStore(),
    aliases: () => new Map(),
    migration: () => ({ dataRemaining: 7n }),
    isMigrating: () => isMigrating,
    clock,
  });
  return { clock, stats, flags };
}

test('FM-8.9 statistics during a migration do not wait for the job that holds the domain', async () => {
  let asked = 0;
  const hangs = (): Promise<never> => {
    asked++;
    return never;
  };
  const { clock, stats, flags } = world({ memoryStats: hangs });
  const answer = await clock.until(stats.get());
  expect(clock.now()).toBeLessThan(1_000);
  expect(flags).toEqual([16 + 32 + NOWAIT]);
  expect(answer).toMatchObject({ MigrateDomainJobInfo: { DataRemaining: 7n }, CPUMap: [[true, false]] });
  await clock.advance(10_000);
  await clock.until(stats.get());
  expect(asked).toBe(1);
});

test('FM-8.9 what is not told in time is as it was last', async () => {
  let isHeld = false;
  const pins = (): Promise<readonly (readonly boolean[])[]> => (isHeld ? never : Promise.resolve([[false, true]]));
  const { clock, stats } = world({ vcpuPinInfo: pins });
  await clock.until(stats.get());
  isHeld = true;
  await clock.advance(10_000);
  expect(await clock.until(stats.get())).toMatchObject({ CPUMap: [[false, true]] });
});

test('without a migration libvirt may take its time', async () => {
  const { clock, stats, flags } = world(
    {
      memoryStats: () =>
        clockOf()
          .sleep(5_000)
          .then(() => new Map([[8, 1n]])),
    },
    false,
  );
  const clockOf = () => clock;
  await clock.until(stats.get());
  expect(clock.now()).toBe(5_000);
  expect(flags).toEqual([48]);
});
