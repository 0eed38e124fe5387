import type { Vmi } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { bindingTrace } from '../testing/compare-vector.ts';
import { createDiskWorld } from '../testing/disk-world.ts';
import { runVector } from '../testing/run-vector.ts';
import type { PreparedInput } from '../testing/vector-preparation.ts';
import { createVectorPreparation } from '../testing/vector-preparation.ts';
import type { TraceEntry, VectorOutput } from '../testing/vector-types.ts';

/** Requests of which these cases are made. */
const RPCS: ReadonlySet<string> = new Set([
  'SyncVirtualMachine',
  'GetDomain',
  'KillVirtualMachine',
  'PauseVirtualMachine',
]);

function isCovered({ input, output }: { readonly input: PreparedInput; readonly output: VectorOutput }): boolean {
  return (
    input.steps.some(({ rpc }) => rpc === 'SyncVirtualMachine') &&
    input.steps.every(({ rpc, do: action }) => (rpc === undefined ? action !== undefined : RPCS.has(rpc))) &&
    output.steps.every(({ panic }) => panic === undefined) &&
    (input.vmi as Partial<Vmi>).status?.changedBlockTracking === undefined &&
    !Object.values(input.files ?? {}).some((file) => 'block' in file)
  );
}

const cases = readCases<PreparedInput, VectorOutput>('launcher-sync').filter(isCovered);

/** Cases that this launcher answers otherwise, and why. */
const DIFFERS: Readonly<Record<string, string>> = {
  '046-ignition': 'the arguments that pass the ignition data to QEMU survive the second define',
  '058-xml-unparsable': 'XML errors have words of their own',
};

/** XML without white space between elements, since a launcher below another root has longer paths. */
function comparable(trace: readonly TraceEntry[], inPod: (text: string) => string): unknown[] {
  return bindingTrace(
    trace.map((entry) => (typeof entry['xml'] === 'string' ? { ...entry, xml: inPod(entry['xml']) } : entry)),
  );
}

describe('recorded syncs give the recorded calls and answers', () => {
  test.each(cases.filter(({ name }) => !(name in DIFFERS)).map((c) => [c.name, c] as const))(
    '%s',
    async (_name, { input, output }) => {
      using world = createDiskWorld({ ...input, hasDirectIo: input.config?.directIO ?? true });
      const result = await runVector(input, createVectorPreparation(world, input), world);
      const steps = output.steps.slice(output.steps.length - input.steps.length);
      steps.forEach(({ trace, response }, i) => {
        const got = result.steps[i];
        expect(comparable(got?.trace ?? [], world.inPod)).toEqual(comparable(trace ?? [], world.inPod));
        if (response === undefined || 'response' in response) return;
        const recorded = response as { success?: boolean; message?: string };
        const error = got?.error === undefined ? undefined : world.inPod(got.error);
        expect(error).toBe(recorded.success === true ? undefined : recorded.message);
      });
      expect(result.metadata).toEqual(output.after.metadata);
      expect(result.aliases).toEqual(output.after.deviceAliases ?? {});
      expect(result.domain).toEqual(output.after.domain);
    },
  );

  test('there are such cases', () => {
    expect(cases.length).toBeGreaterThan(55);
    expect(cases.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(DIFFERS)));
  });
});
