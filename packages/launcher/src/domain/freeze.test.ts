import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { createFreezer } from './freeze.ts';
import { LibvirtCallError } from './libvirt-port.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const vmi = parseVmiJson(
  JSON.stringify({ metadata: { name: 'vm', namespace: 'ns', uid: '1' }, spec: { domain: { devices: {} } } }),
);

/** A guest whose agent is given up on after `answerMs`, and then freezes all the same. */
function start(answerMs: number) {
  const clock = createFakeClock(0);
  const calls: string[] = [];
  let status = 'thawed';
  const freezer = createFreezer({
    libvirt: {
      lookupDomainByName: (name) => Promise.resolve({ name, uuid: '1', id: 1 }),
      agentCommand: () => Promise.resolve(`{"return":"${status}"}`),
      async fsFreeze() {
        calls.push(`freeze ${clock.now()}`);
        await clock.sleep(answerMs);
        status = 'frozen';
        throw new LibvirtCallError(86, 10, 'Guest agent not available for now');
      },
      fsThaw() {
        calls.push(`thaw ${clock.now()}`);
        status = 'thawed';
        return Promise.resolve();
      },
    },
    metadata: createMetadataCache(),
    tools: { run: () => Promise.resolve() },
    clock,
    tpmStateDir: '/none',
  });
  return { clock, calls, freezer };
}

test('a guest that freezes after it was given up on is thawed in time', async () => {
  const { clock, calls, freezer } = start(90_000);
  await expect(clock.until(freezer.freeze(vmi, 300, log))).rejects.toThrow('Guest agent not available for now');
  await clock.advance(600_000);
  expect(calls).toEqual(['freeze 0', 'thaw 390000']);
});

test('an agent that is not there leaves nothing to thaw', async () => {
  const { clock, calls, freezer } = start(0);
  await expect(clock.until(freezer.freeze(vmi, 300, log))).rejects.toThrow('Guest agent not available for now');
  await clock.advance(600_000);
  expect(calls).toEqual(['freeze 0']);
});
