import { parseJson } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { runVector } from '../testing/run-vector.ts';
import type { TraceEntry, VectorInput, VectorOutput } from '../testing/vector-types.ts';

const cases = readCases<VectorInput, VectorOutput>('launcher-agent');

/** Which questions were put to the agent and when; the order within one round is free. */
function questions(trace: readonly TraceEntry[]): readonly string[] {
  return trace
    .filter((entry) => entry['agent'] !== undefined || entry['libvirt'] === 'GetGuestInfo')
    .map((entry) => {
      const types = entry['types'];
      const value = typeof types === 'object' && types !== null && 'value' in types ? types.value : types;
      return `${String(entry.at ?? 0)} ${String(entry['command'] ?? value)}`;
    })
    .sort();
}

/** The last document that a step sent, or nothing. */
function lastDocument(trace: readonly TraceEntry[]): unknown {
  return trace.findLast((entry) => entry['notify'] === 'HandleDomainEvent')?.['domainJSON'];
}

function countDocuments(trace: readonly TraceEntry[]): number {
  return trace.filter((entry) => entry['notify'] === 'HandleDomainEvent').length;
}

/** Embedded JSON text of a response as JSON. */
function readable(response: unknown): Record<string, unknown> {
  const fields = Object.entries((response ?? {}) as Record<string, unknown>);
  const parse = (value: unknown): unknown => (typeof value === 'string' && value !== '' ? parseJson(value) : value);
  return Object.fromEntries(fields.map(([key, value]) => [key, parse(value)]));
}

describe('recorded agents give the recorded facts', () => {
  test.each(cases.map((c) => [c.name, c] as const))('%s', async (_name, { input, output }) => {
    const result = await runVector(input);
    const expected = output.steps.slice(output.steps.length - input.steps.length);
    expected.forEach((step, i) => {
      const got = result.steps[i];
      expect(questions(got?.trace ?? [])).toEqual(questions(step.trace ?? []));
      expect(countDocuments(got?.trace ?? [])).toBe(countDocuments(step.trace ?? []));
      expect(lastDocument(got?.trace ?? [])).toEqual(lastDocument(step.trace ?? []));
      expect(readable(got?.response)).toEqual({ ...step.response, response: undefined });
    });
  });
});
