import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRecordings } from './captures.ts';
import { codecProblem } from './codec.ts';
import { replay } from './replay.ts';

const bundle = (name: string): string => join(import.meta.dirname, `../../../../testdata/${name}.ndjson.gz`);

test('all recorded traffic replays', async () => {
  const result = await replay(readRecordings(bundle('captures')));
  expect(result.problems).toEqual([]);
  expect(result.messages).toBeGreaterThan(800);
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
    const wrong = { ...capture, grpcStatus: { code: 12, message: 'unknown method', name: 'Unimplemented' } };
    writeFileSync(join(folder, 'v1.2.0/scenario/002-Bad.json'), JSON.stringify({ ...wrong, method: '/x.Y/Z' }));
    writeFileSync(
      join(folder, 'v1.2.0/scenario/003-Bad.json'),
      JSON.stringify({ ...capture, response: { type: 'kubevirt.cmd.v1.Response', base64: 'EgNiYWT/' } }),
    );
    const { problems } = await replay(readRecordings(folder));
    expect(new Set(problems.map(({ path }) => path))).toEqual(new Set(['v1.2.0/scenario/003-Bad.json']));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an unknown field survives', () => {
  const base64 = Buffer.from('0801fa3f027b7d', 'hex').toString('base64');
  expect(codecProblem({ type: 'kubevirt.cmd.v1.Response', base64 }, true)).toBeUndefined();
});

test('a folder without anything to replay is refused', () => {
  expect(() => readRecordings(import.meta.dirname)).toThrow('holds no recorded message');
});
