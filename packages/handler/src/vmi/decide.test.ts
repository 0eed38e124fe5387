import { expect, test } from 'vitest';
import type { Domain } from '../model.ts';
import { NOW_MS, sampleDomain, sampleObserved, sampleVmi } from '../testing/samples.ts';
import { decideVmi } from './decide.ts';
import type { Observed } from './observed.ts';

const present = (domain: Domain): Observed['domain'] => ({ state: 'present', domain });
const absent: Observed['domain'] = { state: 'absent', uid: '' };
const deleted = '2026-03-01T11:59:59Z';

function kinds(change: Partial<Observed>): string[] {
  return decideVmi(sampleObserved(change)).steps.map((step) => step.kind);
}

test.each<[string, Partial<Observed>, string[]]>([
  ['does nothing while its own write has not come back', { isExpectationOpen: true }, []],
  [
    'starts a scheduled VMI',
    { vmi: sampleVmi('Scheduled'), domain: absent },
    [
      'trackLauncher',
      'trackLauncher',
      'connectLauncher',
      'openCgroup',
      'awaitContainerDisks',
      'mountContainerDisks',
      'mountHotplugVolumes',
      'setUpNetwork',
      'prepareDevices',
      'runHook',
      'syncDomain',
      'reportDefined',
      'raiseCollected',
      'writeStatus',
    ],
  ],
  [
    'waits for a launcher that is not there yet',
    { vmi: sampleVmi('Scheduled'), domain: absent, launcher: 'not-initialized' },
    ['trackLauncher', 'requeue', 'trackLauncher', 'requeue', 'stop', 'writeStatus'],
  ],
  [
    'syncs a running VM again',
    {},
    [
      'trackLauncher',
      'connectLauncher',
      'openCgroup',
      'mountHotplugVolumes',
      'startDownwardMetrics',
      'advertiseRouter',
      'syncDomain',
      'unmountHotplugVolumes',
      'raiseCollected',
      'writeStatus',
    ],
  ],
  [
    'writes the status alone when the phase is about to change',
    { vmi: sampleVmi('Scheduled'), domain: present(sampleDomain('Running')) },
    ['writeStatus'],
  ],
  [
    'cleans up after a guest that is off',
    { domain: present(sampleDomain('Shutoff', 'Shutdown')) },
    ['deleteDomain', 'finalCleanup', 'writeStatus'],
  ],
  [
    'shuts down a VM whose VMI is being deleted',
    { vmi: sampleVmi('Running', (vmi) => (vmi.metadata.deletionTimestamp = deleted)) },
    ['runHook', 'pingLauncher', 'signalShutdown', 'writeStatus'],
  ],
  [
    'shuts down a VM whose VMI is gone',
    { vmi: undefined },
    ['dropExpectation', 'runHook', 'pingLauncher', 'signalShutdown'],
  ],
  [
    'leaves a VMI of another node alone',
    {
      vmi: sampleVmi('Running', (vmi) => {
        vmi.metadata.labels = {};
        vmi.status = { ...vmi.status, nodeName: 'node02' };
      }),
    },
    [],
  ],
  [
    'leaves a VM alone whose launcher is unreachable, and keeps a safety net only for one that was never heard',
    { domain: present(sampleDomain('Unknown')) },
    [],
  ],
])('%s', (_title, change, steps) => {
  expect(kinds(change)).toEqual(steps);
});

test('FM-3.5 a running VMI whose launcher was not heard keeps its phase and its domain', () => {
  const plan = decideVmi(sampleObserved({ domain: { state: 'unknown', uid: '' }, launcher: 'not-initialized' }));
  expect(plan.steps.map((step) => step.kind)).toEqual(['trackLauncher', 'requeue']);
});

test.each([
  ['old launcher still comes up', 'not-initialized', 1_000, undefined],
  ['old launcher expired', 'unresponsive', 5_000, undefined],
  ['old launcher alive', 'responsive', 5_000, true],
] as const)('FM-3.10 same name, new UID: %s', (_title, strangerLauncher, afterMs, isSafetyNet) => {
  const domain = sampleDomain('Running', 'Unknown', (one) => (one.Spec.Metadata.KubeVirt.UID = 'old'));
  const { steps } = decideVmi(sampleObserved({ domain: present(domain), strangerLauncher }));
  expect(steps.at(-1)).toMatchObject({ kind: 'requeue', afterMs, ...(isSafetyNet ? { isSafetyNet } : {}) });
  expect(steps.some((step) => step.kind === 'finalCleanup')).toBe(strangerLauncher === 'unresponsive');
});

test('FM-3.10 what a dead launcher of the old VMI has left is cleaned up before the new one starts', () => {
  const { steps } = decideVmi(
    sampleObserved({
      vmi: sampleVmi('Scheduled'),
      domain: { state: 'absent', uid: 'old' },
      strangerLauncher: 'unresponsive',
    }),
  );
  expect(steps).toMatchObject([
    { kind: 'finalCleanup', uid: 'old' },
    { kind: 'requeue', afterMs: 5_000 },
  ]);
});

test('FM-4.2 a domain that is defined and not started yet belongs to the start, for five minutes', () => {
  const domain = present(sampleDomain('Shutoff', 'Unknown'));
  const vmi = sampleVmi('Scheduled');
  expect(kinds({ vmi, domain })).toContain('syncDomain');
  expect(kinds({ vmi, domain, nowMs: NOW_MS + 300_000 })).toContain('deleteDomain');
});

test('a guest that ignores its power button is killed when its grace period is over', () => {
  const at = (secondsAgo: number): string[] =>
    kinds({
      vmi: sampleVmi('Running', (vmi) => (vmi.metadata.deletionTimestamp = deleted)),
      domain: present(
        sampleDomain('Running', 'Unknown', (one) => {
          const since = new Date(NOW_MS - secondsAgo * 1_000).toISOString();
          one.Spec.Metadata.KubeVirt.GracePeriod = { DeletionGracePeriodSeconds: 30, DeletionTimestamp: since };
        }),
      ),
    });
  expect(at(29)).toContain('signalShutdown');
  expect(at(30)).toContain('killDomain');
});

test('a step list ends in the status write for every VMI that exists, whatever its phase', () => {
  for (const phase of ['Pending', 'Scheduled', 'Running', 'Succeeded', 'Failed'] as const) {
    for (const status of ['Running', 'Paused', 'Shutoff', 'Crashed', 'NoState', 'ShuttingDown'] as const) {
      const { steps } = decideVmi(sampleObserved({ vmi: sampleVmi(phase), domain: present(sampleDomain(status)) }));
      expect(steps.at(-1)?.kind).toBe('writeStatus');
    }
  }
});

test('a claim under one MiB fails the sync with its reason', () => {
  const vmi = sampleVmi('Scheduled', (one) => {
    one.spec.volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'c' } }];
    const info = { claimName: 'c', volumeMode: 'Filesystem' as const, capacity: { storage: '1k' } };
    one.status = { ...one.status, volumeStatus: [{ name: 'root', target: '', persistentVolumeClaimInfo: info }] };
  });
  const { steps } = decideVmi(sampleObserved({ vmi, domain: absent }));
  expect(steps.flatMap((step) => (step.kind === 'fail' ? [step.message] : []))[0]).toContain('1MiB');
});
