import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { readBundle } from '../../testing/bundle.ts';
import { dialGrpc, knock } from './grpc-client.ts';
import { parseTimeout, renderTimeout } from './grpc-frames.ts';
import { serveGrpc } from './grpc-server.ts';

let dir: string;
let stack: AsyncDisposableStack;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'compat-'));
  stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
});
afterEach(async () => stack.disposeAsync());

const HABIT = { authority: '/var/run/kubevirt/domain-notify-pipe.sock', userAgent: 'grpc-go/1.49.0' };

test('sends a path as authority, which a plain server of Node resets', async () => {
  const path = join(dir, 'plain.sock');
  const http2 = createHttp2Server();
  const server = createServer((socket) => void http2.emit('connection', socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  stack.defer(() => void server.close());
  using connection = await dialGrpc(path, HABIT);
  const { code, details } = await connection.call('/s/M', new Uint8Array(), 2_000);
  expect(code).toBe(13);
  expect(details).toBe('stream terminated by RST_STREAM with error code: PROTOCOL_ERROR');
});

test('writes headers in the order of the recorded handlers', async () => {
  const path = join(dir, 'headers.sock');
  const names: string[] = [];
  const http2 = createHttp2Server();
  http2.on('stream', (stream: ServerHttp2Stream, _headers, _flags, raw) => {
    names.push(...raw.filter((_text, i) => i % 2 === 0));
    stream.respond({ ':status': 200, 'grpc-status': '0' }, { endStream: true });
  });
  const server = createServer((socket) => void http2.emit('connection', socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  stack.defer(() => void server.close());
  using connection = await dialGrpc(path, { ...HABIT, authority: 'localhost' });
  await connection.call('/s/M', new Uint8Array(), 2_000);
  const frames = readBundle('captures').find(({ path: name }) =>
    name.endsWith('v1.3.1/lifecycle/connections/cmd-conn1.frames.json'),
  );
  const recorded = /"(?:headers)":(\[\[.*?\]\])/.exec(JSON.stringify(frames?.json))?.[1];
  const expected = (JSON.parse(recorded ?? '[]') as [string, string][]).map(([name]) => name);
  expect(expected.length).toBeGreaterThan(6);
  expect(names).toEqual(expected);
});

test('a server that dies in the middle of a call is an end of file', async () => {
  const path = join(dir, 'dying.sock');
  const server = await serveGrpc(path, () => Promise.resolve({ kind: 'silence' }));
  using connection = await dialGrpc(path, HABIT);
  const answer = connection.call('/s/M', new Uint8Array(), 5_000);
  await server.kill();
  expect(await answer).toMatchObject({ code: 14, details: 'error reading from server: EOF' });
  expect(await knock(path)).toBe(false);
  await expect(dialGrpc(path, HABIT)).rejects.toThrow('context deadline exceeded');
});

test('a message over 4 MiB is refused by both sides', async () => {
  const path = join(dir, 'large.sock');
  const server = await serveGrpc(path, ({ path: rpc, request }) =>
    Promise.resolve({ kind: 'message', bytes: rpc === '/s/Large' ? Buffer.alloc(4_194_305) : request }),
  );
  stack.defer(() => server.kill());
  using connection = await dialGrpc(path, HABIT);
  const text = 'grpc: received message larger than max (4194305 vs. 4194304)';
  expect(await connection.call('/s/M', Buffer.alloc(4_194_305), 5_000)).toMatchObject({ code: 8, details: text });
  expect(await connection.call('/s/Large', new Uint8Array(), 5_000)).toMatchObject({ code: 8, details: text });
  expect((await connection.call('/s/M', Buffer.alloc(4_194_304), 5_000)).bytes).toHaveLength(4_194_304);
});

test.each([
  [5_000, '5000000u'],
  [20_000, '20000000u'],
  [60_000, '60000000u'],
  [100_000, '100000m'],
])('%i ms are %s in a header', (timeoutMs, header) => {
  expect(renderTimeout(timeoutMs)).toBe(header);
  expect(parseTimeout(header)).toBe(timeoutMs);
});
