import { expect, test } from 'vitest';
import type { RefreshFacts, RefreshStep } from './decide-refresh.ts';
import { decideRefresh } from './decide-refresh.ts';

const base: RefreshFacts = {
  domainName: 'ns_vm',
  nowMs: 10_000,
  startedAtMs: 0,
  startTimeoutMs: 60_000,
  shutdownAtMs: undefined,
  gracePeriodSeconds: 5,
  isExitingEarly: false,
  isDomainGone: false,
  pid: 42,
  processState: 'S',
};
const withoutPid = { pid: undefined, processState: undefined };

test.each<[string, Partial<RefreshFacts>, RefreshStep]>([
  ['waits while QEMU runs', {}, { kind: 'wait' }],
  ['waits while QEMU has not appeared', withoutPid, { kind: 'wait' }],
  [
    'does not wait for a QEMU that came and went between two looks',
    { ...withoutPid, isDomainGone: true },
    { kind: 'done', why: 'ns_vm is deleted, its process was never seen' },
  ],
  ['waits for a QEMU that outlives its domain', { isDomainGone: true }, { kind: 'wait' }],
  [
    'gives up on a QEMU that does not appear in time',
    { ...withoutPid, nowMs: 60_000 },
    { kind: 'done', why: 'ns_vm not found after timeout' },
  ],
  ['waits without a limit when there is none', { ...withoutPid, nowMs: 1e9, startTimeoutMs: 0 }, { kind: 'wait' }],
  [
    'does not wait for a QEMU once the pod is to end',
    { ...withoutPid, shutdownAtMs: 9_000 },
    { kind: 'done', why: 'ns_vm not found after shutdown initiated' },
  ],
  [
    'says so when the grace period is over by then',
    { ...withoutPid, shutdownAtMs: 1_000 },
    { kind: 'done', why: 'ns_vm not found after grace period expired' },
  ],
  ['sees that QEMU is gone', { processState: undefined }, { kind: 'done', why: 'Process ns_vm and pid 42 is gone!' }],
  [
    'FM-9.2 takes a zombie for gone',
    { processState: 'Z' },
    {
      kind: 'done',
      isZombie: true,
      why: 'Process ns_vm and pid 42 is a zombie, sending SIGCHLD to pid 1 to reap process',
    },
  ],
  ['gives the guest its grace period', { shutdownAtMs: 5_000 }, { kind: 'wait' }],
  ['kills after the grace period', { shutdownAtMs: 4_000 }, { kind: 'killAndWait' }],
  [
    'leaves early on the signal of a migration',
    { isExitingEarly: true },
    { kind: 'done', why: 'received early exit signal - stop waiting for ns_vm' },
  ],
])('%s', (_title, change, step) => {
  expect(decideRefresh({ ...base, ...change })).toEqual(step);
});
