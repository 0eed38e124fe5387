import { expect, test } from 'vitest';
import { runVector } from '../testing/run-vector.ts';
import type { ScriptedAnswer } from '../testing/vector-types.ts';

const NOT_RUNNING = { code: 55, domain: 10, message: 'domain is not running' };

async function kill(states: readonly ScriptedAnswer[]): Promise<string | undefined> {
  const { steps } = await runVector({
    title: 'kill',
    vmi: { metadata: { namespace: 'ns', name: 'vm', uid: 'u' } },
    domain: { state: 1, reason: 1, uuid: '1' },
    answers: { DestroyFlags: [{ error: NOT_RUNNING }], GetState: states },
    steps: [{ rpc: 'KillVirtualMachine' }],
  });
  return steps[0]?.error;
}

test('a kill whose QEMU ends before libvirt looks is no failure', async () => {
  expect(await kill([{ state: [1, 1] }, { state: [5, 2] }])).toBeUndefined();
});

test('a domain that libvirt will not destroy while it runs is one', async () => {
  const failure = "LibvirtError(Code=55, Domain=10, Message='domain is not running')";
  expect(await kill([{ state: [1, 1] }, { state: [1, 1] }])).toBe(failure);
});
