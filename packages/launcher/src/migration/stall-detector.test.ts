import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MigrationSettings, StallSettings } from './settings.ts';
import { readMigrationSettings } from './settings.ts';
import { SwitchoverDetector } from './stall-detector.ts';

const MIB = 1 << 20;
const STALL: StallSettings = {
  ...{ margin: 0.05, progressTimeoutS: 3, switchoverTimeoutS: 5, ewmaAlpha: 0.5, precopyPossibleFactor: 2 },
  ...{ patienceDecay: 0.5, searchesLocalMinima: false, completionTimeoutFactor: 1.5 },
};
const BASE = { ...readMigrationSettings(Buffer.from('null')), maxDowntimeMs: 500 };

interface Options {
  readonly settings?: Partial<MigrationSettings>;
  readonly stall?: Partial<StallSettings>;
  readonly hasVfio?: boolean;
  readonly budgetS?: number;
  /** MiB per second; 0 is not known. */
  readonly bandwidth?: number;
}

function detectorOf({ settings, stall, hasVfio = false, budgetS = 300, bandwidth = 100 }: Options): SwitchoverDetector {
  const whole = { ...BASE, ...settings, stall: { ...STALL, ...stall } };
  const detector = new SwitchoverDetector({ settings: whole, hasVfio, budgetS });
  if (bandwidth > 0) detector.sample(bandwidth * MIB);
  return detector;
}

/** Ends a pass each second with so many MiB left; what was due at each. */
function passes(detector: SwitchoverDetector, remainingMiB: readonly number[], fromS = 1): readonly unknown[] {
  return remainingMiB.map((mib, i) => {
    const elapsedS = fromS + i;
    return detector.endPass({ elapsedMs: elapsedS * 1_000, remaining: mib * MIB }, elapsedS)?.kind;
  });
}

const STUCK = [800, 500, 400, 400, 400, 400];
const NOTHING = [undefined, undefined, undefined, undefined, undefined];

describe('at the end of a pass', () => {
  test('does nothing while less remains each time', () => {
    expect(passes(detectorOf({}), [900, 800, 700, 600, 500, 400, 300, 200])).toEqual(Array(8).fill(undefined));
  });

  test('does nothing before it knows the bandwidth', () => {
    expect(passes(detectorOf({ bandwidth: 0 }), STUCK)).toEqual([...NOTHING, undefined]);
  });

  test.each<[string, Options, string]>([
    ['cancels what cannot be done in the allowed downtime', {}, 'cancel'],
    ['allows a downtime that is not far beyond', { settings: { maxDowntimeMs: 2_500 } }, 'setMaxDowntime'],
    ['stops a guest that may be disrupted', { settings: { allowsDisruption: true } }, 'setMaxDowntime'],
    ['starts post-copy', { settings: { allowsDisruption: true, allowsPostCopy: true } }, 'startPostCopy'],
    [
      'stops a guest with devices instead of post-copy',
      { settings: { allowsDisruption: true, allowsPostCopy: true }, hasVfio: true },
      'setMaxDowntime',
    ],
  ])('of a stalled migration it %s', (_title, options, kind) => {
    expect(passes(detectorOf(options), STUCK)).toEqual([...NOTHING, kind]);
  });

  test('a bandwidth of 0, which QEMU tells of before it measured one, does not count', () => {
    const detector = detectorOf({ bandwidth: 0, settings: { maxDowntimeMs: 4_000 } });
    detector.sample(0);
    expect(passes(detector, STUCK)).toEqual([...NOTHING, undefined]);
    // The first real sample counts whole: 400 MiB take 4 s.
    detector.sample(100 * MIB);
    expect(passes(detector, STUCK, 7).at(-1)).toBe('setMaxDowntime');
  });

  test.each([
    [100, 95, undefined],
    [100, 96, 'setMaxDowntime'],
    // A margin of 4 % leaves 96.96 bytes, which are 96 whole ones.
    [101, 96, 'setMaxDowntime'],
  ])('with a margin of 4 %% the step from %i to %i bytes leads to %s', (before, after, kind) => {
    const detector = detectorOf({ stall: { margin: 0.04 }, settings: { allowsDisruption: true } });
    const end = (elapsedS: number, remaining: number): unknown =>
      detector.endPass({ elapsedMs: elapsedS * 1_000, remaining }, elapsedS)?.kind;
    expect(end(1, before)).toBeUndefined();
    expect(end(4, after)).toBe(kind);
  });

  test('waits where the rest does not fit into the time that is left', () => {
    expect(passes(detectorOf({ budgetS: 5 }), STUCK)).toEqual([...NOTHING, undefined]);
  });

  test('acts once, unless libvirt refuses', () => {
    const detector = detectorOf({ settings: { allowsDisruption: true } });
    expect(passes(detector, STUCK).at(-1)).toBe('setMaxDowntime');
    expect(passes(detector, [400, 400], 7)).toEqual([undefined, undefined]);
    detector.refused();
    expect(passes(detector, [400], 9)).toEqual(['setMaxDowntime']);
  });

  test('waits for a moment as good as the best so far, and gets less choosy', () => {
    const detector = detectorOf({ settings: { allowsDisruption: true }, stall: { searchesLocalMinima: true } });
    expect(passes(detector, [800, 300, 500, 500, 500])).toEqual(NOTHING);
    // Stalled at 5 s with 300 as the best; 500 is not good enough until the patience of 3 s is over.
    expect(passes(detector, [500, 500], 6)).toEqual([undefined, undefined]);
    expect(passes(detector, [500], 8)).toEqual(['setMaxDowntime']);
  });
});

describe('when the time is over', () => {
  test('cancels without a bandwidth', () => {
    expect(detectorOf({ bandwidth: 0, budgetS: 4 }).checkTimeout('PreCopy', 5)?.kind).toBe('cancel');
  });

  test.each<[string, Options, string]>([
    ['cancels', {}, 'cancel'],
    ['stops a guest that may be disrupted', { settings: { allowsDisruption: true } }, 'setMaxDowntime'],
    ['starts post-copy', { settings: { allowsPostCopy: true, allowsDisruption: true } }, 'startPostCopy'],
  ])('%s', (_title, options, kind) => {
    const detector = detectorOf({ ...options, budgetS: 4 });
    detector.note({ elapsedMs: 4_900, remaining: 68 * MIB });
    expect(detector.checkTimeout('PreCopy', 4)).toBeUndefined();
    expect(detector.checkTimeout('PreCopy', 5)?.kind).toBe(kind);
  });

  test('a forced switchover that libvirt refuses is not tried for ever', () => {
    // So long a budget that there would be time for another try.
    const detector = detectorOf({ settings: { allowsDisruption: true }, budgetS: 40 });
    expect(detector.checkTimeout('PreCopy', 41)?.kind).toBe('setMaxDowntime');
    detector.refused();
    expect(detector.checkTimeout('PreCopy', 46)).toBeUndefined();
    expect(detector.checkTimeout('PreCopy', 47)?.kind).toBe('cancel');
  });

  test('a switchover that does not come in time ends the migration', () => {
    const detector = detectorOf({ settings: { maxDowntimeMs: 2_500 } });
    expect(passes(detector, STUCK).at(-1)).toBe('setMaxDowntime');
    expect(detector.checkTimeout('PreCopy', 11)).toBeUndefined();
    expect(detector.checkTimeout('PreCopy', 12)?.kind).toBe('cancel');
  });

  test('has no limit with budget 0, and none in post-copy', () => {
    expect(detectorOf({ budgetS: 0 }).checkTimeout('PreCopy', 99_999)).toBeUndefined();
    expect(detectorOf({ budgetS: 4 }).checkTimeout('PostCopy', 99_999)).toBeUndefined();
  });
});

test('whatever the migration does: no second switchover, no downtime beyond QEMU’s, cancelled only without disruption', () => {
  const course = fc.array(fc.record({ mib: fc.nat(4_000), mbps: fc.nat(500) }), { maxLength: 60 });
  fc.assert(
    fc.property(course, fc.boolean(), fc.boolean(), fc.boolean(), (steps, allowsDisruption, allowsPostCopy, minima) => {
      const settings = { allowsDisruption, allowsPostCopy };
      const detector = detectorOf({ settings, stall: { searchesLocalMinima: minima }, bandwidth: 0 });
      const done = steps.flatMap(({ mib, mbps }, i) => {
        detector.sample(mbps * MIB);
        return detector.endPass({ elapsedMs: i * 1_000, remaining: mib * MIB }, i) ?? [];
      });
      expect(done.length).toBeLessThanOrEqual(1);
      for (const action of done) {
        if (action.kind === 'setMaxDowntime') expect(action.downtimeMs).toBe(allowsDisruption ? 2_000_000 : 500);
        if (action.kind === 'cancel') expect(allowsDisruption).toBe(false);
      }
    }),
  );
});
