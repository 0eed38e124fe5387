import { expect, test } from 'vitest';
import { NOW_MS, sampleDomain, sampleVmi } from '../testing/samples.ts';
import { gracePeriod } from './grace-period.ts';

test.each<[string, number | undefined, number, number | undefined, object]>([
  ['no period in the domain', 30, 0, undefined, { kind: 'none' }],
  ['the first attempt', 30, 30, undefined, { kind: 'first', waitSeconds: 5 }],
  ['the first attempt of a short period', 3, 30, undefined, { kind: 'first', waitSeconds: 3 }],
  ['the first attempt without a period in the spec', undefined, 3, undefined, { kind: 'first', waitSeconds: 5 }],
  ['a repeat', 30, 30, 10, { kind: 'repeat', waitSeconds: 5, leftSeconds: 20 }],
  ['the last repeat', 30, 30, 28, { kind: 'repeat', waitSeconds: 2, leftSeconds: 2 }],
  ['the very end', 30, 30, 30, { kind: 'expired' }],
  ['a period of zero in the spec', 0, 30, undefined, { kind: 'expired' }],
  ['the spec before the domain', 600, 30, 40, { kind: 'repeat', waitSeconds: 5, leftSeconds: 560 }],
])('%s', (_title, inSpec, inDomain, secondsAgo, expected) => {
  const vmi = sampleVmi('Running', (one) => {
    if (inSpec === undefined) delete one.spec.terminationGracePeriodSeconds;
    else one.spec.terminationGracePeriodSeconds = inSpec;
  });
  const domain = sampleDomain('Running', 'Unknown', (one) => {
    one.Spec.Metadata.KubeVirt.GracePeriod = {
      DeletionGracePeriodSeconds: inDomain,
      ...(secondsAgo === undefined ? {} : { DeletionTimestamp: new Date(NOW_MS - secondsAgo * 1_000).toISOString() }),
    };
  });
  expect(gracePeriod(vmi, domain, NOW_MS)).toMatchObject(expected);
});
