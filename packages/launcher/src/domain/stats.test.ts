import { parseJson } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { runVector } from '../testing/run-vector.ts';
import type { VectorInput, VectorOutput } from '../testing/vector-types.ts';

const cases = readCases<VectorInput, VectorOutput>('launcher-stats');
const isStatsOnly = ({ input }: { input: VectorInput }): boolean =>
  input.steps.every(({ rpc }) => rpc === undefined || rpc === 'GetDomainStats' || rpc === 'GetQemuVersion');

describe('recorded statistics give the recorded answers', () => {
  test.each(cases.filter(isStatsOnly).map((c) => [c.name, c] as const))('%s', async (_name, { input, output }) => {
    const result = await runVector(input);
    output.steps.slice(output.steps.length - input.steps.length).forEach((step, i) => {
      const { response, error } = result.steps[i] ?? {};
      if (step.response === undefined) return;
      const expected = step.response as { domainStats?: unknown; response: { success?: boolean; message?: string } };
      if (expected.response.success !== true) {
        expect(error).toBe(expected.response.message);
        return;
      }
      const text = (response as { domainStats: string }).domainStats;
      expect(parseJson(text)).toEqual(expected.domainStats);
      expect(JSON.stringify(Object.keys(parseJson(text) as object))).toBe(
        JSON.stringify(Object.keys(expected.domainStats as object)),
      );
    });
  });
});
