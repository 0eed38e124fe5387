import { describe, expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { bindingTrace } from '../testing/compare-vector.ts';
import { runVector } from '../testing/run-vector.ts';
import type { VectorInput, VectorOutput } from '../testing/vector-types.ts';

const cases = readCases<VectorInput, VectorOutput>('launcher-events');

/** Cases in which this launcher does better or less than the recorded one, and why. */
const DIFFERS: Readonly<Record<string, string>> = {
  '077-notify-never': 'the newest state is kept and sent when the pipe is back',
};

/** Registration is the connection's, which restores it whole; it has tests of its own. */
const isRegistration = (name: string): boolean => name.includes('register');

describe('recorded libvirt events give the recorded messages', () => {
  test.each(cases.filter(({ name }) => !(name in DIFFERS) && !isRegistration(name)).map((c) => [c.name, c] as const))(
    '%s',
    async (_name, { input, output }) => {
      const result = await runVector(input);
      const { after } = output;
      const steps = output.steps.slice(output.steps.length - input.steps.length);
      expect(result.steps.map(({ trace }) => bindingTrace(trace))).toEqual(
        steps.map(({ trace }) => bindingTrace(trace ?? [])),
      );
      expect(result.metadata).toEqual(after.metadata);
      expect(result.isDeleteTold).toBe(after.main?.includes('first MODIFIED with deletionTimestamp') ?? false);
    },
  );

  test('every exception is a case', () => {
    expect(cases.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(DIFFERS)));
  });

  test('a state that could not be delivered for 20 s goes out when the pipe is back', async () => {
    const { input } = cases.find(({ name }) => name === '077-notify-never') ?? {};
    expect(input).toBeDefined();
    if (input === undefined) return;
    const { steps } = await runVector(input);
    const sent = steps[1]?.trace.filter((entry) => entry['notify'] === 'HandleDomainEvent') ?? [];
    expect(sent.map(({ eventType }) => eventType)).toEqual(['MODIFIED']);
    expect(sent[0]?.at).toBeGreaterThanOrEqual(23_000 - 50);
    expect(sent[0]?.at).toBeLessThan(25_000);
  });
});
