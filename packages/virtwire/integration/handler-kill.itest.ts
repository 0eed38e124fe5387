import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countIn, ensureGuest, missingForVms, readLog, until } from './support/machine.ts';
import { TestNode } from './support/test-node.ts';
import { untilRunning } from './support/vm.ts';

const missing = missingForVms();

/** Steps of a start, by the log line that says that they were reached. */
const STEPS: readonly (readonly [title: string, log: 'handler' | 'launcher', message: string])[] = [
  ['the hand-over', 'handler', 'VMI is in phase: Scheduled'],
  ['the connection to the launcher', 'handler', 'connect to the launcher'],
  ['the look at the pod network', 'handler', 'Current pod network'],
  ['the plan for the pod network', 'handler', 'Desired pod network'],
  ['the pod network', 'handler', 'pod network configured'],
  ['the devices', 'handler', '"msg":"devices"'],
  ['the definition of the domain', 'launcher', 'Domain defined.'],
  ['the start of the domain', 'launcher', 'Domain started.'],
  ['the end of the sync', 'launcher', 'Synced vmi'],
  ['the phase Running', 'handler', 'VMI phase changed to Running'],
];

describe.skipIf(missing !== undefined)(
  `the handler is killed during a start${missing === undefined ? '' : `: ${missing}`}`,
  () => {
    let host: TestNode;

    beforeAll(async () => {
      ensureGuest();
      host = await TestNode.open();
    });
    afterAll(async () => {
      await host[Symbol.asyncDispose]();
    });

    test.each(STEPS)('at %s: the VM gets to Running all the same, started once', async (_title, which, message) => {
      const name = `kill-${STEPS.findIndex((step) => step[2] === message)}`;
      const seen = readLog(host.scratch.layout.handlerLog).length;
      const key = await host.start({ name, network: 'masquerade' });
      const reached = (): boolean => {
        const text =
          which === 'handler' ? readLog(host.scratch.layout.handlerLog).slice(seen) : readLog(host.launcherLog(key));
        return text
          .split('\n')
          .some((line) => line.includes(message) && (which === 'launcher' || line.includes(`"${name}"`)));
      };
      await until(`"${message}"`, 60_000, reached);
      const handler = host.node.handler.pid;
      if (handler !== undefined) process.kill(handler, 'SIGKILL');
      const vmi = await untilRunning(host.node, key);
      await until(
        'another handler',
        20_000,
        () => host.node.handler.pid !== undefined && host.node.handler.pid !== handler,
      );
      expect(vmi.status?.phaseTransitionTimestamps?.map((t) => t.phase)).toEqual([
        'Pending',
        'Scheduling',
        'Scheduled',
        'Running',
      ]);
      expect(countIn(host.launcherLog(key), 'Domain started.')).toBe(1);
      await host.stop(key, true);
    });
  },
);
