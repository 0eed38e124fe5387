import { expect, test } from 'vitest';
import { decideVm } from './decide.ts';
import type { Observed, Step } from './decide.ts';

const base: Observed = {
  phase: 'Pending',
  isDeleting: false,
  sandbox: 'none',
  isLauncherReady: true,
  endedForMs: 0,
  deletingForMs: 0,
  finalForMs: 0,
  handlerHolds: false,
  isTerminated: false,
  isKilled: false,
  graceMs: 30_000,
  isReady: false,
  shouldBeReady: false,
};

test.each<[string, Partial<Observed>, Step['kind']]>([
  ['builds a sandbox for a new VM', {}, 'createSandbox'],
  ['builds it again when a restart found none', { phase: 'Scheduling' }, 'createSandbox'],
  ['waits while the launcher starts', { phase: 'Scheduling', sandbox: 'running', isLauncherReady: false }, 'wait'],
  ['hands over once the launcher is ready', { phase: 'Scheduling', sandbox: 'running' }, 'handOver'],
  ['fails a VM whose launcher ended before the hand-over', { phase: 'Scheduling', sandbox: 'ended' }, 'fail'],
  ['never starts a VM that is to end', { isDeleting: true }, 'fail'],
  [
    'does not wait 15 s for a launcher without a guest that was interrupted while it starts',
    { phase: 'Scheduling', sandbox: 'running', isDeleting: true },
    'killSandbox',
  ],
  ['ends such a VM then', { phase: 'Scheduling', sandbox: 'running', isDeleting: true, isKilled: true }, 'fail'],
  ['leaves a running VM to the handler', { phase: 'Running', sandbox: 'running' }, 'wait'],
  ['lets the handler tell the end of a launcher', { phase: 'Running', sandbox: 'ended', endedForMs: 900 }, 'wait'],
  ['tells it itself when the handler does not', { phase: 'Running', sandbox: 'ended', endedForMs: 6_000 }, 'fail'],
  ['says that a VM is ready', { phase: 'Running', sandbox: 'running', shouldBeReady: true }, 'setReady'],
  ['says that a paused one is not', { phase: 'Running', sandbox: 'running', isReady: true }, 'setReady'],
  ['tells the launcher to end', { phase: 'Running', sandbox: 'running', isDeleting: true }, 'terminateSandbox'],
  [
    'waits for the guest',
    { phase: 'Running', sandbox: 'running', isDeleting: true, isTerminated: true, deletingForMs: 59_000 },
    'wait',
  ],
  [
    'kills after the grace period',
    { phase: 'Running', sandbox: 'running', isDeleting: true, isTerminated: true, deletingForMs: 60_001 },
    'killSandbox',
  ],
  [
    'kills once',
    {
      phase: 'Running',
      sandbox: 'running',
      isDeleting: true,
      isTerminated: true,
      isKilled: true,
      deletingForMs: 70_000,
    },
    'wait',
  ],
  ['waits for the clean-up of the handler', { phase: 'Failed', sandbox: 'ended', handlerHolds: true }, 'wait'],
  [
    'does not wait for it for ever',
    { phase: 'Failed', sandbox: 'ended', handlerHolds: true, finalForMs: 11_000 },
    'removeSandbox',
  ],
  ['asks the launcher of a final VM to end', { phase: 'Succeeded', sandbox: 'running' }, 'terminateSandbox'],
  ['waits for it to end', { phase: 'Succeeded', sandbox: 'running', isTerminated: true }, 'wait'],
  [
    'removes a launcher that does not end',
    { phase: 'Succeeded', sandbox: 'running', isTerminated: true, finalForMs: 16_000 },
    'removeSandbox',
  ],
  ['removes the sandbox of a final VM', { phase: 'Succeeded', sandbox: 'ended' }, 'removeSandbox'],
  ['keeps a final VM until it is removed', { phase: 'Succeeded' }, 'wait'],
  ['removes a final VM that is to go', { phase: 'Succeeded', isDeleting: true }, 'removeVmi'],
])('%s', (_title, change, kind) => {
  expect(decideVm({ ...base, ...change }).kind).toBe(kind);
});

test.each<[phase: Observed['phase'], isDeleting: boolean, reason: string, message: string]>([
  ['Running', false, 'LauncherEnded', 'the launcher ended while the VM was running'],
  ['Running', true, 'LauncherEnded', 'the launcher ended while the VM was running'],
  ['Scheduled', false, 'LauncherEnded', 'the launcher ended before the VM was started'],
  ['Scheduled', true, 'Deleted', 'stopped before it was started'],
])(
  'a launcher that ended under a VM that is %s, to end: %s, is told as what it is',
  (phase, isDeleting, reason, message) => {
    const step = decideVm({ ...base, phase, isDeleting, sandbox: 'ended', endedForMs: 6_000 });
    expect(step).toEqual({ kind: 'fail', reason, message });
  },
);
