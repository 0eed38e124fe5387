import type { Vmi } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { comparableSteps } from '../testing/comparable-steps.ts';
import { createDiskWorld } from '../testing/disk-world.ts';
import { runVector } from '../testing/run-vector.ts';
import type { PreparedInput } from '../testing/vector-preparation.ts';
import { createVectorPreparation } from '../testing/vector-preparation.ts';
import type { VectorOutput } from '../testing/vector-types.ts';

/** Requests of which these cases are made. */
const RPCS: ReadonlySet<string> = new Set([
  'SyncVirtualMachine',
  'GetDomain',
  'KillVirtualMachine',
  'PauseVirtualMachine',
]);

/** Requests that need what a sync prepares. */
const LIVE_UPDATES: ReadonlySet<string | undefined> = new Set([
  ...['SyncVirtualMachineCPUs', 'SyncVirtualMachineMemory', 'HotplugHostDevices'],
]);

function isCovered({ input, output }: { readonly input: PreparedInput; readonly output: VectorOutput }): boolean {
  return (
    (input.steps.every(({ rpc }) => LIVE_UPDATES.has(rpc)) ||
      (input.steps.some(({ rpc }) => rpc === 'SyncVirtualMachine') &&
        input.steps.every(({ rpc, do: action }) => (rpc === undefined ? action !== undefined : RPCS.has(rpc))))) &&
    output.steps.every(({ panic }) => panic === undefined) &&
    (input.vmi as Partial<Vmi>).status?.changedBlockTracking === undefined
  );
}

const cases = readCases<PreparedInput, VectorOutput>('launcher-sync').filter(isCovered);

describe('recorded syncs give the recorded calls and answers', () => {
  test.each(cases.map((c) => [c.name, c] as const))('%s', async (_name, { input, output }) => {
    using world = createDiskWorld({ ...input, hasDirectIo: input.config?.directIO ?? true });
    const result = await runVector(input, createVectorPreparation(world, input), world);
    const steps = output.steps.slice(output.steps.length - input.steps.length);
    const calls = comparableSteps(input, steps, result.steps, world.inPod);
    expect(calls.map(({ actual }) => actual)).toEqual(calls.map(({ expected }) => expected));
    steps.forEach(({ response }, i) => {
      const got = result.steps[i];
      if (response === undefined || 'response' in response) return;
      const recorded = response as { success?: boolean; message?: string };
      const error = got?.error === undefined ? undefined : world.inPod(got.error);
      expect(error).toBe(recorded.success === true ? undefined : recorded.message);
    });
    expect(result.metadata).toEqual(output.after.metadata);
    expect(result.aliases).toEqual(output.after.deviceAliases ?? {});
    expect(result.domain).toEqual(output.after.domain);
  });

  test('there are such cases', () => {
    expect(cases.length).toBeGreaterThan(75);
  });
});
