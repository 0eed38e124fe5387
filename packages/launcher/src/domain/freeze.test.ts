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

/** A guest that is reached only while libvirt is there. */
function startReachable() {
  const clock = createFakeClock(0);
  const calls: string[] = [];
  const state = { isLibvirtAway: false, losesLibvirt: false, status: 'thawed' };
  const lost = (): LibvirtCallError => new LibvirtCallError(38, 7, 'the connection to the daemon was lost');
  const reached = <T>(value: T): Promise<T> => (state.isLibvirtAway ? Promise.reject(lost()) : Promise.resolve(value));
  const freezer = createFreezer({
    libvirt: {
      lookupDomainByName: (name) => reached({ name, uuid: '1', id: 1 }),
      agentCommand: () => reached(`{"return":"${state.status}"}`),
      fsFreeze() {
        state.status = 'frozen';
        state.isLibvirtAway = state.losesLibvirt;
        return reached(undefined);
      },
      async fsThaw() {
        await reached(undefined);
        calls.push(`thaw ${clock.now()}`);
        state.status = 'thawed';
      },
    },
    metadata: createMetadataCache(),
    tools: { run: () => Promise.resolve() },
    clock,
    tpmStateDir: '/none',
  });
  return { clock, calls, freezer, state };
}

test('a guest whose thaw fails while libvirt is away is thawed when it is back', async () => {
  const { clock, calls, freezer, state } = startReachable();
  await clock.until(freezer.freeze(vmi, 0, log));
  state.isLibvirtAway = true;
  await expect(freezer.thaw(vmi, log)).rejects.toThrow('the connection to the daemon was lost');
  await clock.advance(2_000);
  state.isLibvirtAway = false;
  await clock.advance(600_000);
  expect(calls).toEqual(['thaw 3000']);
});

test('libvirt is away when a guest that nobody thaws is due', async () => {
  const { clock, calls, freezer, state } = startReachable();
  await clock.until(freezer.freeze(vmi, 10, log));
  state.isLibvirtAway = true;
  await clock.advance(12_000);
  expect(calls).toEqual([]);
  state.isLibvirtAway = false;
  await clock.advance(600_000);
  expect(calls).toEqual(['thaw 13000']);
});

test('a freeze over which libvirt goes away is thawed in time', async () => {
  const { clock, calls, freezer, state } = startReachable();
  state.losesLibvirt = true;
  await expect(freezer.freeze(vmi, 10, log)).rejects.toThrow('the connection to the daemon was lost');
  state.isLibvirtAway = false;
  await clock.advance(600_000);
  expect(calls).toEqual(['thaw 10000']);
});

test('a thaw that is tried again ends after ten minutes, and gives way to the next freeze', async () => {
  const { clock, calls, freezer, state } = startReachable();
  await clock.until(freezer.freeze(vmi, 0, log));
  state.isLibvirtAway = true;
  await expect(freezer.thaw(vmi, log)).rejects.toThrow();
  state.isLibvirtAway = false;
  await freezer.freeze(vmi, 300, log);
  await clock.advance(299_000);
  expect(calls).toEqual([]);
  state.isLibvirtAway = true;
  await clock.advance(660_000);
  state.isLibvirtAway = false;
  await clock.advance(660_000);
  expect(calls).toEqual([]);
});
