import { cmdV1 } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { createRawAgentData } from '../agent/raw-data.ts';
import { createAgentStore } from '../agent/store.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { statsHandlers } from './vm-stats.ts';

const gone = (): Promise<never> => Promise.reject(new Error('not asked for'));

test('a dirty rate that libvirt measured and does not tell is refused with the words that handlers know', async () => {
  const handlers = statsHandlers({
    stats: { get: gone },
    dirtyRate: { get: () => Promise.resolve(undefined) },
    agentData: createRawAgentData(
      { libvirt: { lookupDomainByName: gone, agentCommand: gone }, clock: createFakeClock(0) },
      'ns_vm',
    ),
    agent: createAgentStore(),
    isCollectorOn: true,
  });
  const words = 'Dirty rate MegabytesPerSecondSet is false';
  await expect(handlers.getDomainDirtyRateStats()).rejects.toThrow(words);
  expect(await handlers.getVMStats(cmdV1.VMStatsRequest.fromPartial({ dirtyRate: {} }))).toEqual({
    response: { success: false, message: `dirty rate stats: ${words}` },
    dirtyRateStats: { response: { success: false, message: words } },
  });
});
