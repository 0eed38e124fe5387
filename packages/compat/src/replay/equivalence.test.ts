import { join } from 'node:path';
import { cmdV1 } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { launcherVerdicts } from './answers.ts';
import type { Capture } from './captures.ts';
import { compareAnswers } from './equivalence.ts';
import { readRecordings } from './recordings.ts';

const { captures } = readRecordings(join(import.meta.dirname, '../../../../testdata/captures.ndjson.br'));
const scenario = captures.filter(({ path }) => path.startsWith('handlers/v1.3.1/lifecycle/'));

async function problemsOf(change: (capture: Capture) => Capture): Promise<readonly string[]> {
  const verdicts = await launcherVerdicts(scenario.map((capture) => change(capture)));
  return [...verdicts].flatMap(([{ path }, verdict]) =>
    verdict.kind === 'different' ? [`${path.slice(path.lastIndexOf('/') + 1)}: ${verdict.problem}`] : [],
  );
}

const answered = (response: Partial<cmdV1.Response>): Pick<Capture, 'response' | 'grpcStatus'> => ({
  response: {
    type: 'kubevirt.cmd.v1.Response',
    base64: Buffer.from(cmdV1.Response.encode(cmdV1.Response.fromPartial(response)).finish()).toString('base64'),
  },
  grpcStatus: { code: 0, message: '' },
});

test('our launcher answers a whole recorded scenario as the recorded one', async () => {
  expect(await problemsOf((capture) => capture)).toEqual([]);
});

test.each<[string, string, Partial<Capture>, RegExp]>([
  [
    'a success became a refusal',
    'PauseVirtualMachine',
    answered({ message: 'no' }),
    /answers success, recorded is a refusal: no/,
  ],
  [
    'a refusal has a VMI that is none',
    'FreezeVirtualMachine',
    { request: { type: 'kubevirt.cmd.v1.FreezeRequest', base64: 'CgA=' } },
    /answers a refusal: No valid vmi object present .*, recorded is success/,
  ],
  [
    'a call has another method',
    'UnfreezeVirtualMachine',
    { method: '/kubevirt.cmd.v1.Cmd/NoSuchMethod' },
    /answers code 12: .*, recorded is success/,
  ],
  [
    'a status has another code',
    'GetUsers',
    { grpcStatus: { code: 7, message: 'no' } },
    /answers success, recorded is code 7: no/,
  ],
])('%s: it is told of the call', async (_title, rpc, change, text) => {
  const [target] = scenario.filter(({ method }) => method.endsWith(`/${rpc}`));
  const problems = await problemsOf((capture) => (capture === target ? { ...capture, ...change } : capture));
  expect(problems.join('\n')).toMatch(text);
});

const PAUSE: Capture = {
  ...{
    path: 'p',
    release: 'v1.3.1',
    scenario: 's',
    channel: 'cmd',
    method: '/kubevirt.cmd.v1.Cmd/PauseVirtualMachine',
  },
  request: { type: 'kubevirt.cmd.v1.VMIRequest', base64: '' },
  ...answered({ success: true }),
};
const ours = (code: number, response: Partial<cmdV1.Response> = {}) => ({
  ...{ code, details: 'text' },
  bytes: cmdV1.Response.encode(cmdV1.Response.fromPartial(response)).finish(),
});
const NOT_FOUND = "LibvirtError(Code=42, Domain=10, Message='x')";
const NOT_RUNNING = "LibvirtError(Code=55, Domain=10, Message='x')";
const OTHER = "LibvirtError(Code=8, Domain=10, Message='x')";

test.each<[string, Partial<Capture>, ReturnType<typeof ours>, 'equal' | 'different' | 'open']>([
  ['no answer of ours, whatever was recorded', { grpcStatus: { code: 14, message: '' } }, ours(14), 'different'],
  [
    'an answer where the recorded launcher crashed',
    { grpcStatus: { code: 14, message: '' } },
    ours(0, { success: true }),
    'open',
  ],
  [
    'an RPC that the recorded release lacks',
    { grpcStatus: { code: 12, message: '' } },
    ours(0, { success: true }),
    'open',
  ],
  ['two refusals in other words', answered({ message: 'a' }), ours(0, { message: 'b' }), 'equal'],
  [
    'two refusals of libvirt for another state',
    answered({ message: NOT_FOUND }),
    ours(0, { message: NOT_RUNNING }),
    'different',
  ],
  [
    'a refusal of libvirt that one in memory does not know',
    answered({ message: OTHER }),
    ours(0, { success: true }),
    'open',
  ],
  ['a status instead of a refusal', answered({ message: 'a' }), ours(2), 'different'],
  ['bytes that are no answer', {}, { code: 0, details: '', bytes: Buffer.from('0aff', 'hex') }, 'different'],
])('%s', (_title, change, answer, kind) => {
  const state = { domain: 'Running', hasAgent: false };
  expect(compareAnswers({ ...PAUSE, ...change }, answer, state, true).kind).toBe(kind);
});
