import { expect, test } from 'vitest';
import { createDomainStore } from '../domain-watch/domain-store.ts';
import type { Launchers } from '../launchers/launchers.ts';
import type { NodeParts } from '../prepare/parts.ts';
import { sampleVmi } from '../testing/samples.ts';
import { recordedLog } from '../testing/silent-log.ts';
import { finalCleanup } from './final-cleanup.ts';
import type { Pass } from './pass.ts';

function setUp(failing: readonly string[]) {
  const done: string[] = [];
  const step = (name: string) => async (): Promise<void> => {
    done.push(name);
    if (failing.includes(name)) throw new Error(`${name} failed`);
  };
  const parts = {
    containerDisks: { unmount: step('container disks') },
    hotplug: { unmountAll: step('hotplug') },
    network: { tearDown: step('network') },
  } as unknown as NodeParts;
  const launchers = { forget: step('forget') } as unknown as Launchers;
  const pass: Pass = {
    key: 'ns1/vm1',
    vmi: sampleVmi('Running'),
    exists: true,
    domain: undefined,
    log: recordedLog(),
    collected: [],
    client: undefined,
    isolation: undefined,
    dropsDomain: 'no',
  };
  const deps = { launchers, parts, domains: createDomainStore(), onCleanedUp: () => void done.push('told') };
  return { done, pass, run: (uid = 'uid-1') => finalCleanup(deps, pass, uid) };
}

test('everything is removed in the order of the model, connection and record last', async () => {
  const { done, pass, run } = setUp([]);
  await run();
  expect(done).toEqual(['container disks', 'hotplug', 'network', 'forget', 'told']);
  expect(pass.dropsDomain).toBe('own');
});

test('P2 every step is tried, failures are joined, and the record stays for the next try', async () => {
  const { done, pass, run } = setUp(['container disks', 'hotplug']);
  await expect(run()).rejects.toThrow('container disks failed; hotplug failed');
  expect(done).toEqual(['container disks', 'hotplug', 'network']);
  expect(pass.dropsDomain).toBe('no');
});

test('a network that cannot be torn down does not hold the rest up', async () => {
  const { done, run } = setUp(['network']);
  await run();
  expect(done).toContain('forget');
});

test('without a UID there is no network to tear down', async () => {
  const { done, run } = setUp([]);
  await run('');
  expect(done).not.toContain('network');
});
