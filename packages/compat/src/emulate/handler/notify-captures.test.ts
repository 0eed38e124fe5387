import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { readBundle } from '../../testing/bundle.ts';
import { openReleaseSchema } from '../schema/release-schema.ts';
import { dialGrpc } from '../transport/grpc-client.ts';
import { startEmulatedHandler } from './handler.ts';

interface Message {
  readonly method: string;
  readonly label?: string;
  readonly request: { readonly base64: string };
  readonly response?: { readonly base64: string };
  readonly grpcStatus: { readonly code: number; readonly message: string };
}

test('a handler of v1.9 answers events, good and bad, as the recorded notify server did', async () => {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'compat-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, 'pods'));
  const handler = stack.use(
    await startEmulatedHandler({
      line: 'v1.9',
      podsDir: join(dir, 'pods'),
      shareDir: join(dir, 's'),
      podShareDir: () => join(dir, 'root'),
    }),
  );
  const metadata = { namespace: 'vectors', name: 'vm1', uid: '5e1f0a00-0000-4000-8000-00000000c001' };
  await handler.run('resync', { metadata, spec: { domain: { devices: {} } } }, 'pod');
  const connection = stack.use(await dialGrpc(handler.notifySocket, { authority: 'localhost', userAgent: 'test' }));
  const schema = openReleaseSchema('v1.9.0');
  const messages = readBundle('captures').filter(({ path }) => /^v1\.9\.0\/notify-server\/\d{3}-/.test(path));
  const outcomes: [unknown, unknown][] = [];
  for (const { path, json } of messages.toSorted((a, b) => a.path.localeCompare(b.path))) {
    const { method, request, response, grpcStatus, label } = json as Message;
    const answer = await connection.call(method, Buffer.from(request.base64, 'base64'), 5_000);
    const title = `${path} ${label ?? ''}`;
    const decode = (bytes: Uint8Array): unknown => schema.rpcs.get(method)?.decodeResponse(bytes).fields;
    const plain = (text: string): string => text.replaceAll('\u00a0', ' ');
    outcomes.push([
      [title, answer.code, plain(answer.details), answer.code === 0 ? decode(answer.bytes) : undefined],
      [
        title,
        grpcStatus.code,
        plain(grpcStatus.message),
        grpcStatus.code === 0 ? decode(Buffer.from(response?.base64 ?? '', 'base64')) : undefined,
      ],
    ]);
  }
  expect(outcomes.length).toBeGreaterThan(20);
  expect(outcomes.map(([now]) => now)).toEqual(outcomes.map(([, then]) => then));
});
