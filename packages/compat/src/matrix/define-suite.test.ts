import { describe, expect, test } from 'vitest';
import { defineCompatSuite } from './define-suite.ts';
import type { TestRunner } from './define-suite.ts';
import { startOurHandler } from './our-handler.ts';
import { startOurLauncher } from './our-launcher.ts';

const lines = ['v1.2'] as const;

// As users do.
defineCompatSuite(
  { handler: startOurHandler, launcher: startOurLauncher },
  { describe, test },
  { lines, scenarios: ['first-start', 'pause'] },
);

/** Collects what is defined instead of running it. */
function collect(): { readonly runner: TestRunner; readonly tests: Parameters<TestRunner['test']>[] } {
  const tests: Parameters<TestRunner['test']>[] = [];
  return { tests, runner: { describe: (_name, define) => define(), test: (...args) => void tests.push(args) } };
}

test('a handler that does not start fails its test with the reason', async () => {
  const { runner, tests } = collect();
  const broken = { handler: () => Promise.reject(new Error('no such binary')) };
  defineCompatSuite(broken, runner, { lines, scenarios: ['first-start'] });
  expect(tests).toHaveLength(1);
  await expect(tests[0]?.[1]({ skip: () => undefined })).rejects.toThrow('no such binary');
});
