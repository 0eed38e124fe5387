import { parseJson } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { comparableSteps } from '../testing/comparable-steps.ts';
import { runVector } from '../testing/run-vector.ts';
import type { VectorInput, VectorOutput } from '../testing/vector-types.ts';

/** RPCs that need no conversion of a VMI. */
const RPCS: ReadonlySet<string> = new Set([
  ...['PauseVirtualMachine', 'UnpauseVirtualMachine', 'ShutdownVirtualMachine', 'KillVirtualMachine'],
  ...['ResetVirtualMachine', 'SoftRebootVirtualMachine', 'FreezeVirtualMachine', 'UnfreezeVirtualMachine', 'Exec'],
  ...['VirtualMachineMemoryDump', 'InjectLaunchSecret', 'BackupVirtualMachine', 'RedefineCheckpoint'],
  ...['DeleteVirtualMachine', 'GetDomain', 'GetQemuVersion', 'GuestPing', 'GetGuestInfo', 'GetUsers', 'Ping'],
]);

const isCovered = ({ input }: { readonly input: VectorInput }): boolean =>
  input.steps.every(({ rpc, do: action }) => (rpc === undefined ? action !== undefined : RPCS.has(rpc)));

const cases = readCases<VectorInput, VectorOutput>('launcher-sync').filter(isCovered);

/** Embedded JSON text of a response as JSON. */
function readable(response: unknown): Record<string, unknown> {
  const fields = Object.entries((response ?? {}) as Record<string, unknown>);
  const parse = (value: unknown): unknown => {
    if (typeof value !== 'string' || !/^[[{]/.test(value)) return value;
    return parseJson(value);
  };
  return Object.fromEntries(
    fields.filter(([, value]) => value !== '' && value !== 0).map(([key, value]) => [key, parse(value)]),
  );
}

type Recorded = Readonly<Record<string, unknown>> & {
  readonly success?: boolean | undefined;
  readonly message?: string | undefined;
};

/** What a recorded answer says beside success, and its failure. */
function outcomeOf(recorded: Recorded): { readonly failure: string | undefined; readonly body: Recorded } {
  const outcome = (recorded['response'] as Recorded | undefined) ?? recorded;
  const failure = outcome.success === true ? undefined : outcome.message;
  return { failure, body: { ...recorded, response: undefined, success: undefined, message: undefined } };
}

/** What was answered beside success, and its failure: one that was thrown, or one within an answer that says more. */
function outcomeOfStep(step: { readonly response?: unknown; readonly error?: string } | undefined): {
  readonly failure: string | undefined;
  readonly body: Record<string, unknown>;
} {
  const body = readable(step?.response);
  const { response } = body as { readonly response?: { readonly message: string } };
  return { failure: step?.error ?? response?.message, body: { ...body, response: undefined } };
}

describe('recorded requests give the recorded calls and answers', () => {
  test.each(cases.map((c) => [c.name, c] as const))('%s', async (_name, { input, output }) => {
    const result = await runVector(input);
    const steps = output.steps.slice(output.steps.length - input.steps.length);
    const calls = comparableSteps(input, steps, result.steps, (text) => text);
    expect(calls.map(({ actual }) => actual)).toEqual(calls.map(({ expected }) => expected));
    steps.forEach(({ response }, i) => {
      const got = result.steps[i];
      const { failure, body } = outcomeOf(response ?? {});
      if (response === undefined) return;
      const answered = outcomeOfStep(got);
      expect(answered.failure).toBe(failure);
      if (failure === undefined) expect(answered.body).toEqual(body);
      expect(answered.body['checkpointInvalid'] === true).toBe(body['checkpointInvalid'] === true);
    });
    expect(result.metadata).toEqual(output.after.metadata);
  });

  test('there are such cases', () => {
    expect(cases.length).toBeGreaterThan(30);
  });
});
