import { describe } from 'vitest';
import { testCalls } from './calls-suite.ts';
import { testDevices } from './devices-suite.ts';
import { testDomains } from './domains-suite.ts';
import type { HarnessKind } from './harness.ts';
import { testLosses } from './losses-suite.ts';
import { testStreams } from './streams-suite.ts';

/** Everything that must hold against any daemon, fake or real. */
export function libvirtSuite(kind: HarnessKind): void {
  describe(kind.title, () => {
    testCalls(kind);
    testDomains(kind);
    testDevices(kind);
    testStreams(kind);
    testLosses(kind);
  });
}
