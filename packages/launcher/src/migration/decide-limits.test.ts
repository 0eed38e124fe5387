import { expect, test } from 'vitest';
import type { LimitAction, LimitFacts } from './decide-limits.ts';
import { decideLimits } from './decide-limits.ts';
import type { MigrationSettings } from './settings.ts';
import { readMigrationSettings } from './settings.ts';

const SETTINGS: MigrationSettings = {
  ...readMigrationSettings(Buffer.from('{"Bandwidth":"0"}')),
  progressTimeoutS: 150,
  completionTimeoutS: 150,
};
const FACTS: LimitFacts = { mode: 'PreCopy', elapsedS: 0, stuckS: 0, budgetS: 300, hasVfio: false };
const disrupting = { allowsDisruption: true };
const postCopy = { allowsDisruption: true, allowsPostCopy: true };

test.each<[string, Partial<MigrationSettings>, Partial<LimitFacts>, LimitAction]>([
  ['lets a migration go on', {}, {}, { kind: 'none' }],
  ['lets one go on that is just in time', {}, { elapsedS: 300, stuckS: 150 }, { kind: 'none' }],
  ['cancels one without progress', {}, { stuckS: 151 }, { kind: 'cancel', reason: 'stuck for 151 seconds' }],
  ['cancels a late one', {}, { elapsedS: 301 }, { kind: 'cancel', reason: 'not completed after 300 seconds' }],
  [
    'names the missing progress first',
    {},
    { elapsedS: 301, stuckS: 200 },
    { kind: 'cancel', reason: 'stuck for 200 seconds' },
  ],
  ['does not count progress with limit 0', { progressTimeoutS: 0 }, { stuckS: 9_999 }, { kind: 'none' }],
  ['has all the time with budget 0', disrupting, { budgetS: 0, elapsedS: 9_999 }, { kind: 'none' }],
  ['pauses a late guest that may be disrupted', disrupting, { elapsedS: 301 }, { kind: 'pause' }],
  ['pauses a late guest before it looks at progress', disrupting, { elapsedS: 301, stuckS: 301 }, { kind: 'pause' }],
  ['starts post-copy where it is allowed', postCopy, { elapsedS: 301 }, { kind: 'startPostCopy' }],
  [
    'does not start post-copy without disruption',
    { allowsPostCopy: true },
    { elapsedS: 301 },
    { kind: 'cancel', reason: 'not completed after 300 seconds' },
  ],
  [
    'raises the downtime of guests with devices',
    postCopy,
    { elapsedS: 301, hasVfio: true },
    { kind: 'raiseDowntime', downtimeMs: 600_000 },
  ],
  [
    'knows how far QEMU goes',
    postCopy,
    { budgetS: 1_500, elapsedS: 1_501, hasVfio: true },
    { kind: 'raiseDowntime', downtimeMs: 2_000_000 },
  ],
  [
    'cancels a paused one that is late again',
    disrupting,
    { mode: 'Paused', elapsedS: 301 },
    { kind: 'cancel', reason: 'not completed after 300 seconds' },
  ],
  ['never cancels in post-copy', postCopy, { mode: 'PostCopy', elapsedS: 9_999, stuckS: 9_999 }, { kind: 'none' }],
])('%s', (_title, settings, facts, action) => {
  expect(decideLimits({ ...SETTINGS, ...settings }, { ...FACTS, ...facts })).toEqual(action);
});
