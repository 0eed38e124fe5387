import { expect, test } from 'vitest';
import { decideKeep, restartDelayMs } from './keep-decide.ts';
import type { KeepFacts, KeepStep } from './keep-decide.ts';

const base: KeepFacts = {
  wantedHash: 'h1',
  stored: undefined,
  settledHash: undefined,
  isManifestUnknown: false,
  failures: 0,
  sinceFailureMs: Number.POSITIVE_INFINITY,
};
const running = { hash: 'h1', phase: 'Running', isStopping: false };

test.each<[string, Partial<KeepFacts>, KeepStep['kind']]>([
  ['starts a VM that a manifest asks for', {}, 'admit'],
  ['leaves a running VM alone', { stored: running }, 'none'],
  ['stops a VM whose manifest is gone', { wantedHash: undefined, stored: running }, 'stop'],
  [
    'leaves it while a manifest cannot be read',
    { wantedHash: undefined, stored: running, isManifestUnknown: true },
    'none',
  ],
  ['stops a VM whose manifest changed', { wantedHash: 'h2', stored: running }, 'stop'],
  ['does not stop it twice', { wantedHash: 'h2', stored: { ...running, isStopping: true } }, 'none'],
  ['takes a failed VM away', { stored: { ...running, phase: 'Failed' } }, 'stop'],
  ['starts it again after a while', { failures: 1, sinceFailureMs: 6_000 }, 'admit'],
  ['not before', { failures: 1, sinceFailureMs: 1_000 }, 'wait'],
  ['remembers that a guest shut itself down', { stored: { ...running, phase: 'Succeeded' } }, 'settle'],
  ['takes it away then', { stored: { ...running, phase: 'Succeeded' }, settledHash: 'h1' }, 'stop'],
  ['leaves it down', { settledHash: 'h1' }, 'none'],
  ['starts it again when its manifest changes', { wantedHash: 'h2', settledHash: 'h1' }, 'admit'],
  ['forgets it when its manifest is gone', { wantedHash: undefined, settledHash: 'h1' }, 'forget'],
])('%s', (_title, change, kind) => {
  expect(decideKeep({ ...base, ...change }).kind).toBe(kind);
});

test('the delay grows and is bounded', () => {
  const delays = [0, 1, 2, 3, 20].map(restartDelayMs);
  expect(delays).toEqual([0, 5_000, 10_000, 20_000, 300_000]);
});
