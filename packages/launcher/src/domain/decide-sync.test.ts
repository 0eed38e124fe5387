import { expect, test } from 'vitest';
import type { SyncFacts } from './decide-sync.ts';
import { decideSync } from './decide-sync.ts';
import { DOMAIN_STATE, PAUSED_REASON } from './state.ts';

const base: SyncFacts = {
  state: DOMAIN_STATE.paused,
  reason: PAUSED_REASON.ioError,
  phase: 'Running',
  isPausedByRequest: false,
  isDumping: false,
};

test.each<[string, Partial<SyncFacts>, ReturnType<typeof decideSync>]>([
  ['starts a domain that never ran', { state: DOMAIN_STATE.shutoff, phase: 'Scheduled' }, 'start'],
  ['leaves one that has run to the handler', { state: DOMAIN_STATE.shutoff }, 'none'],
  ['goes on with a guest that an error of a disk stopped', {}, 'resume'],
  ['does not go on with one that somebody paused', { isPausedByRequest: true }, 'none'],
  ['leaves a guest to the dump that holds it still', { reason: PAUSED_REASON.dump, isDumping: true }, 'none'],
  ['goes on with a guest whose dump libvirt died over', { reason: PAUSED_REASON.dump }, 'resume'],
  ['goes on with a guest that stands still for something else than its dump', { isDumping: true }, 'resume'],
])('%s', (_title, change, due) => {
  expect(decideSync({ ...base, ...change })).toBe(due);
});
