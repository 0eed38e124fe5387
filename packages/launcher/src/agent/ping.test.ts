import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import type { K8sEvent } from '../events/k8s-event.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { pingGuest } from './ping.ts';

const silent = new LibvirtCallError(86, 10, 'Guest agent is not responding');
const broken = new LibvirtCallError(1, 10, 'internal error');
const start = { UID: 'm', StartTimestamp: '2000-01-01T00:00:00Z' };

async function ping(
  failure: Error | undefined,
  migration: object | undefined,
  state: readonly [number, number] = [1, 1],
): Promise<{ readonly isExcused: boolean; readonly events: readonly K8sEvent[] }> {
  const metadata = createMetadataCache();
  if (migration !== undefined) metadata.migration.set(migration);
  const events: K8sEvent[] = [];
  const answer = pingGuest(
    {
      libvirt: {
        lookupDomainByName: () => Promise.resolve({ name: 'ns_vm', uuid: 'u', id: 1 }),
        getState: () => Promise.resolve({ state: state[0], reason: state[1] }),
        agentCommand: () => (failure === undefined ? Promise.resolve('{}') : Promise.reject(failure)),
      },
      metadata,
      clock: createFakeClock(0),
      log: createLogger('virt-launcher', { destination: { write: () => undefined } }),
      areProbesPaused: () => false,
      sendK8sEvent: (event) => Promise.resolve(void events.push(event)),
    },
    'ns_vm',
  );
  const isExcused = await answer.then(
    () => true,
    () => false,
  );
  return { isExcused, events };
}

test.each<[string, Error | undefined, object | undefined, readonly [number, number], boolean]>([
  ['answers for a guest that answers', undefined, undefined, [1, 1], true],
  ['excuses the silence of a guest on its way', silent, start, [1, 1], true],
  ['excuses the silence of a guest that is paused on purpose', silent, undefined, [3, 1], true],
  [
    'does not excuse it before and after a migration',
    silent,
    { ...start, EndTimestamp: '2000-01-01T00:00:09Z' },
    [1, 1],
    false,
  ],
  ['does not excuse a guest that is paused for a failing disk', silent, undefined, [3, 5], false],
  ['does not excuse another failure of a guest on its way', broken, start, [1, 1], false],
])('FM-8.10 a probe %s', async (_title, failure, migration, state, isExcused) => {
  const { isExcused: got, events } = await ping(failure, migration, state);
  expect(got).toBe(isExcused);
  expect(events.map(({ reason }) => reason)).toEqual(isExcused ? [] : ['GuestAgentPingFailed']);
});
