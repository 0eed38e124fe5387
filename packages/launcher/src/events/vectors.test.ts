import { describe, expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { comparableSteps } from '../testing/comparable-steps.ts';
import { runVector } from '../testing/run-vector.ts';
import type { VectorInput, VectorOutput } from '../testing/vector-types.ts';

const cases = readCases<VectorInput, VectorOutput>('launcher-events');

/** Registration is the connection's, which restores it whole; it has tests of its own. */
const isRegistration = (name: string): boolean => name.includes('register');

describe('recorded libvirt events give the recorded messages', () => {
  test.each(cases.filter(({ name }) => !isRegistration(name)).map((c) => [c.name, c] as const))(
    '%s',
    async (_name, { input, output }) => {
      const result = await runVector(input);
      const { after } = output;
      const steps = output.steps.slice(output.steps.length - input.steps.length);
      const calls = comparableSteps(input, steps, result.steps, (text) => text);
      expect(calls.map(({ actual }) => actual)).toEqual(calls.map(({ expected }) => expected));
      expect(result.metadata).toEqual(after.metadata);
      expect(result.isDeleteTold).toBe(after.main?.includes('first MODIFIED with deletionTimestamp') ?? false);
    },
  );

  test('FM-2.1 a state that could not be delivered for 20 s goes out when the pipe is back', async () => {
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
