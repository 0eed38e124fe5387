import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { expect, test } from 'vitest';
import { DEFAULT_HANDLER_CONFIG } from './config.ts';
import { handlerConfig, HANDLER_FLAGS } from './flags.ts';

const read = (...args: string[]) => handlerConfig(parseArgs({ args, options: HANDLER_FLAGS }).values);

test('without flags the defaults are those of KubeVirt', () => {
  expect(read()).toEqual({ ...DEFAULT_HANDLER_CONFIG, nodeName: hostname() });
});

test('flags take the forms of Go: durations with units, seconds as numbers', () => {
  expect(read('--watchdog-timeout', '1m30s', '--domain-resync-period-seconds', '20')).toMatchObject({
    watchdogTimeoutMs: 90_000,
    domainResyncPeriodMs: 20_000,
  });
});

test.each([
  [['--watchdog-timeout', 'soon'], '--watchdog-timeout: '],
  [['--watchdog-timeout', '0s'], '--watchdog-timeout: "0s" must be longer than nothing'],
  [['--domain-resync-period-seconds', '5m'], '--domain-resync-period-seconds: "5m" is no number of seconds'],
])('%j is refused with the name of the flag', (args, message) => {
  expect(() => read(...args)).toThrow(message);
});
