import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { connectCmd, serveCmd } from './index.ts';
import { tempSocket, type TempSocket } from './testing/sockets.ts';

const PACKAGE = join(import.meta.dirname, '..');
const blocks = Array.from(
  readFileSync(join(PACKAGE, 'README.md'), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g),
  (match) => match[1] ?? '',
);

let socket: TempSocket;
let scratch: string;
beforeEach(() => {
  socket = tempSocket();
  // Inside the package, so that its name resolves.
  mkdirSync(join(PACKAGE, 'temp'), { recursive: true });
  scratch = mkdtempSync(join(PACKAGE, 'temp/readme-'));
});
afterEach(() => {
  socket[Symbol.dispose]();
  rmSync(scratch, { recursive: true, force: true });
});

/** Runs a block of the README as a program, with a socket of the test's own. */
async function runBlock(block: string | undefined, end = ''): Promise<string> {
  const program = join(scratch, 'program.ts');
  writeFileSync(program, `${(block ?? '').replaceAll(/'\/[^']*\/launcher-sock'/g, `'${socket.path}'`)}${end}`);
  return (await promisify(execFile)(process.execPath, ['-C', '@virtwire/source', program])).stdout;
}

test('the README has an example of either side, of documents, and of the history', () => {
  expect(blocks).toHaveLength(4);
});

test('the example that calls a launcher runs', async () => {
  const paused: string[] = [];
  await using _server = await serveCmd(socket.path, {
    getDomain: async () => ({ domain: '{"ObjectMeta":{}}' }),
    pauseVirtualMachine: async ({ vmi }) => void paused.push(Buffer.from(vmi?.vmiJson ?? []).toString()),
  });
  expect(await runBlock(blocks[0])).toBe('{"ObjectMeta":{}}\n');
  expect(paused).toEqual(['{"metadata":{"name":"vm1","namespace":"default"}}']);
});

test('the example that calls a launcher in documents runs', async () => {
  const options: unknown[] = [];
  await using _server = await serveCmd(socket.path, {
    getDomain: async () => ({ domain: '{"Status":{"Status":"Running"}}' }),
    migrateVirtualMachine: async (request) => {
      const { Bandwidth, AllowPostCopy } = JSON.parse(Buffer.from(request.options).toString()) as Record<
        string,
        unknown
      >;
      options.push({ Bandwidth, AllowPostCopy });
    },
  });
  expect(await runBlock(blocks[1])).toBe('Running\n');
  expect(options).toEqual([{ Bandwidth: '64Mi', AllowPostCopy: true }]);
});

test('the example that serves a launcher runs', async () => {
  const ask = `
const { connectCmd } = await import('@virtwire/shared-proto');
using client = await connectCmd('${socket.path}');
const version = await client.getQemuVersion();
const kill = await client.killVirtualMachine({ vmi: { vmiJson: Buffer.from('{}') } });
process.stdout.write(JSON.stringify([version.ok && version.value.version, !kill.ok && kill.error.detail]));
`;
  expect(JSON.parse(await runBlock(blocks[2], ask))).toEqual(['QEMU 10.0.13', 'Domain not found.']);
  await expect(connectCmd(socket.path)).rejects.toMatchObject({ code: 'DialFailed' });
});

test('the example that looks into the history runs', async () => {
  expect(await runBlock(blocks[3])).toBe('true v1.6.0 true\n');
});
