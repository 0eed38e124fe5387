import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RecordedMessage } from './captures.ts';
import { readRecordings } from './recordings.ts';
import { codecProblem } from './codec.ts';
import { MessageReader } from './recorded-json.ts';
import { replay } from './replay.ts';

const bundle = (name: string): string => join(import.meta.dirname, `../../../../testdata/${name}.ndjson.br`);

test('all recorded traffic replays', { timeout: 240_000 }, async () => {
  const result = await replay(readRecordings(bundle('captures')));
  expect(result.problems).toEqual([]);
  expect(result.messages).toBeGreaterThan(800);
  expect(result.connections).toBeGreaterThan(10);
  // What is left open is told by its reason.
  const open = Object.values(result.open).reduce((sum, count) => sum + count, 0);
  expect(open).toBeLessThan(60);
  expect(result.answers).toBeGreaterThan(1_300);
});

test('all samples of documents are read and come back', async () => {
  const result = await replay(readRecordings(bundle('wire-samples')));
  expect(result.problems).toEqual([]);
  expect(result.samples).toBeGreaterThan(10);
});

test('a folder is read as a bundle is, and a difference is told with its file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'virtwire-replay-'));
  try {
    mkdirSync(join(folder, 'v1.2.0/scenario'), { recursive: true });
    const capture = {
      ...{ release: 'v1.2.0', scenario: 'scenario', channel: 'cmd', method: '/kubevirt.cmd.v1.Cmd/Ping' },
      request: { type: 'kubevirt.cmd.v1.EmptyRequest', base64: '' },
      response: { type: 'kubevirt.cmd.v1.Response', base64: 'CAE=' },
      grpcStatus: { code: 0, message: '', name: 'OK' },
    };
    writeFileSync(join(folder, 'v1.2.0/scenario/001-Ping.json'), JSON.stringify(capture));
    expect(await replay(readRecordings(folder))).toMatchObject({ messages: 1, answers: 2, problems: [] });
    const { request } = capture;
    const grpcStatus = { code: 12, message: 'unknown method', name: 'Unimplemented' };
    const wrong = { channel: 'cmd', request, grpcStatus };
    writeFileSync(join(folder, 'v1.2.0/scenario/012-Bad.json'), JSON.stringify({ ...wrong, method: '/x.Y/Z' }));
    writeFileSync(
      join(folder, 'v1.2.0/scenario/013-Bad.json'),
      JSON.stringify({ ...capture, response: { type: 'kubevirt.cmd.v1.Response', base64: 'EgNiYWT/' } }),
    );
    const { problems, selections } = await replay(readRecordings(folder));
    expect(selections).toEqual(['v1.2.0/scenario']);
    expect(new Set(problems.map(({ path }) => path))).toEqual(new Set(['v1.2.0/scenario/013-Bad.json']));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an unknown field survives in what a newer release sends, and in a request that the record shows', () => {
  const message = { type: 'kubevirt.cmd.v1.Response', base64: Buffer.from('0801fa3f027b7d', 'hex').toString('base64') };
  const shown = { ...message, protobufJSON: { success: true } };
  const problem = (one: RecordedMessage, context: { isNewer?: boolean; isRequest?: boolean }): string | undefined =>
    codecProblem(one, { isWellFormed: () => true, isNewer: false, isRequest: true, ...context }, new MessageReader());
  expect(problem(message, { isNewer: true })).toBeUndefined();
  expect(problem(shown, {})).toBeUndefined();
  for (const text of [problem(message, {}), problem(shown, { isRequest: false })]) {
    expect(text).toContain('1023 is no field of any release');
  }
});

const METADATA = { namespace: 'ns1', name: 'vm1', uid: 'u1' };
/** A request about a VM, with the VMI in another field or under another key. */
function requestBytes(field = 1, key = 'metadata'): string {
  const json = Buffer.from(JSON.stringify({ [key]: METADATA }));
  const vmi = Buffer.concat([Buffer.of(0x0a, json.length), json]);
  return Buffer.concat([Buffer.of(field * 8 + 2, vmi.length), vmi]).toString('base64');
}

const PAUSE = {
  ...{ release: 'v1.3.1', scenario: 'scenario', channel: 'cmd', method: '/kubevirt.cmd.v1.Cmd/PauseVirtualMachine' },
  request: {
    ...{ type: 'kubevirt.cmd.v1.VMIRequest', protobufJSON: { vmi: { vmiJson: '@embedded' } } },
    base64: requestBytes(),
    embedded: { 'vmi.vmiJson': { metadata: METADATA } },
  },
  response: { type: 'kubevirt.cmd.v1.Response', base64: 'CAE=', protobufJSON: { success: true } },
  grpcStatus: { code: 0, message: '', name: 'OK' },
};
const withRequest = (base64: string): object => ({ ...PAUSE, request: { ...PAUSE.request, base64 } });
const withResponse = (response: object): object => ({ ...PAUSE, response: { ...PAUSE.response, ...response } });

async function replayOne(capture: object): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'virtwire-replay-'));
  try {
    writeFileSync(join(folder, '001.json'), JSON.stringify(capture));
    const { problems } = await replay(readRecordings(folder));
    return problems.map(({ path, problem }) => `${path}: ${problem}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a record whose bytes are what it shows has no problem', async () => {
  expect(await replayOne(PAUSE)).toEqual([]);
});

test.each([
  ['a field was dropped', withRequest(''), 'vmi is not what was recorded'],
  ['a field was renumbered', withRequest(requestBytes(5)), 'vmi is not what was recorded'],
  ['a key of its JSON changed case', withRequest(requestBytes(1, 'Metadata')), 'the JSON of vmi.vmiJson'],
  ['it was cut off', withRequest(requestBytes().slice(0, 12)), 'undecodable'],
  ['its response was renumbered', withResponse({ base64: 'KAE=' }), 'success is not what was recorded'],
  ['its response is another message', withResponse({ type: 'kubevirt.cmd.v1.ExecResponse' }), 'stands where'],
])('a record fails by its name when %s', async (_what, capture, text) => {
  expect((await replayOne(capture)).join('\n')).toMatch(new RegExp(`^001.json: .*${text}`));
});

test.each([
  ['base64 that is none', withResponse({ base64: '!!!!' }), 'response has no type, or no base64'],
  ['no status', { ...PAUSE, grpcStatus: undefined, response: undefined }, 'grpcStatus has no code'],
  ['a status without number', { ...PAUSE, grpcStatus: 'OK' }, 'grpcStatus has no code'],
  ['a failure and a response', { ...PAUSE, grpcStatus: { code: 14, message: '' } }, 'the call failed with code 14'],
  ['no request', { ...PAUSE, request: null }, 'request has no type, or no base64'],
  [
    'the name of another code',
    { ...PAUSE, grpcStatus: { code: 0, message: '', name: 'NotFound' } },
    'grpcStatus has code 0, and the name "NotFound"',
  ],
  ['a status text that is none', { ...PAUSE, grpcStatus: { code: 0, message: 7 } }, 'grpcStatus has a message'],
  ['a number that is none', { ...PAUSE, seq: 'one' }, 'seq is "one"'],
  ['a time that is none', { ...PAUSE, atMs: 'now' }, 'atMs is no number'],
])('a record with %s is told by its name', async (_what, capture, text) => {
  expect((await replayOne(capture)).join('\n')).toContain(`001.json: is no recorded call: ${text}`);
});

test('all broken files of a folder are told, and the rest is replayed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'virtwire-replay-'));
  try {
    mkdirSync(join(folder, 'connections'));
    writeFileSync(join(folder, '001-Pause.json'), JSON.stringify(PAUSE));
    writeFileSync(join(folder, '002-Half.json'), JSON.stringify(PAUSE).slice(0, 100));
    writeFileSync(join(folder, '003-Other.json'), '[]');
    writeFileSync(join(folder, 'timeline.json'), '{');
    writeFileSync(join(folder, 'connections/cmd-conn1.bin'), 'GET / HTTP/1.1');
    writeFileSync(join(folder, 'index.json'), JSON.stringify({ messages: [{ file: '004-Gone.json' }] }));
    const { problems, messages } = await replay(readRecordings(folder));
    expect(messages).toBe(1);
    const told = problems.map(({ path, problem }) => `${path}: ${problem}`).sort();
    expect(told).toEqual([
      expect.stringContaining('002-Half.json: is no JSON'),
      '003-Other.json: is no recorded call: channel is neither cmd nor notify',
      'connections/cmd-conn1.bin: byte 0: it does not begin as HTTP/2 does',
      'index.json: does not list 001-Pause.json',
      'index.json: does not list 002-Half.json',
      'index.json: does not list 003-Other.json',
      'index.json: lists 004-Gone.json, which is not there',
      expect.stringContaining('timeline.json: is no JSON'),
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a folder without anything to replay is refused', () => {
  expect(() => readRecordings(import.meta.dirname)).toThrow('holds no recorded message');
});
