import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createRpcHost } from '../rpc-host.ts';
import { listenUnix, type RpcServer } from '../server.ts';
import { askSidecar, callMutateDomain, callOnDefineDomain, callPreCloudInitIso, callSidecarShutdown } from './index.ts';

const OPTIONS = { dialTimeoutMs: 2_000, timeoutMs: 5_000 };
const xml = Buffer.from('<a/>');
const vmi = Buffer.from('{}');

let dir: string;
let server: RpcServer | undefined;

/** Serves one method of a sidecar, with bytes as they are; the requests are kept as hex. */
async function serve(path: string, handle: () => Promise<Uint8Array>): Promise<{ socket: string; requests: string[] }> {
  const requests: string[] = [];
  const limits = { maxConnections: 10, maxCalls: 10, onFault: () => undefined };
  const method = {
    path,
    handle: (bytes: Buffer) => {
      requests.push(bytes.toString('hex'));
      return handle();
    },
  };
  server = await listenUnix(join(dir, 'hook.sock'), createRpcHost([method], limits), limits);
  return { socket: server.socketPath, requests };
}

const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex');

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-hooks-'));
});

afterEach(async () => {
  await server?.stop(0);
  rmSync(dir, { recursive: true });
});

describe('the bytes of the calls are those of the published protocol', () => {
  test('Info', async () => {
    // name "n"; a field of the past; hook point {"p", 3}; versions "v1alpha3".
    const answer = hex('0a016e 12017a 1a05 0a0170 1003 2208 7631616c70686133');
    const { socket, requests } = await serve('/kubevirt.hooks.info.Info/Info', () => Promise.resolve(answer));
    const info = await askSidecar(socket, OPTIONS);
    expect(info).toMatchObject({ name: 'n', hookPoints: [{ name: 'p', priority: 3 }], versions: ['v1alpha3'] });
    expect(requests).toEqual(['']);
  });

  test.each(['v1alpha1', 'v1alpha2', 'v1alpha3'] as const)('OnDefineDomain of %s', async (version) => {
    const path = `/kubevirt.hooks.${version}.Callbacks/OnDefineDomain`;
    const { socket, requests } = await serve(path, () => Promise.resolve(hex('0a023c2f')));
    const answer = await callOnDefineDomain(socket, version, { domainXML: xml, vmi }, OPTIONS);
    expect(Buffer.from(answer).toString()).toBe('</');
    expect(requests).toEqual(['0a043c612f3e12027b7d']);
  });

  test.each(['v1alpha2', 'v1alpha3'] as const)('PreCloudInitIso of %s', async (version) => {
    const path = `/kubevirt.hooks.${version}.Callbacks/PreCloudInitIso`;
    const { socket, requests } = await serve(path, () => Promise.resolve(hex('0a0161 1a0162')));
    const data = { cloudInitNoCloudSource: Buffer.from('x'), cloudInitData: Buffer.from('y') };
    const answer = await callPreCloudInitIso(socket, version, { ...data, vmi }, OPTIONS);
    const texts = [answer.cloudInitNoCloudSource, answer.cloudInitData].map((bytes) => Buffer.from(bytes).toString());
    expect(texts).toEqual(['a', 'b']);
    expect(requests).toEqual(['0a017812027b7d1a0179']);
  });

  test('Shutdown', async () => {
    const path = '/kubevirt.hooks.v1alpha3.Callbacks/Shutdown';
    const { socket, requests } = await serve(path, () => Promise.resolve(new Uint8Array()));
    await callSidecarShutdown(socket, OPTIONS);
    expect(requests).toEqual(['']);
  });

  test('MutateDomain', async () => {
    const path = '/kubevirt.hooks.plugins.v1alpha1.DomainHookService/MutateDomain';
    const { socket, requests } = await serve(path, () => Promise.resolve(hex('0a013c')));
    const answer = await callMutateDomain(socket, { domainXML: xml, vmi, invocationContext: 'Boot' }, OPTIONS);
    expect(Buffer.from(answer).toString()).toBe('<');
    expect(requests).toEqual(['0a076c69627669727412043c612f3e1a027b7d22060a04426f6f74']);
  });
});

describe('a sidecar that does not answer as it should', () => {
  const INFO = '/kubevirt.hooks.info.Info/Info';

  test('is waited for no longer than said', async () => {
    const { socket } = await serve(INFO, () => new Promise(() => undefined));
    const failure = {
      code: 'DeadlineExceeded',
      message: 'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
    };
    await expect(askSidecar(socket, { ...OPTIONS, timeoutMs: 50 })).rejects.toMatchObject(failure);
  });

  test('is left when the caller gives up', async () => {
    const { socket } = await serve(INFO, () => new Promise(() => undefined));
    await expect(askSidecar(socket, { ...OPTIONS, signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
      code: 'Aborted',
    });
  });

  test('has its answer refused when it is no message', async () => {
    const { socket } = await serve(INFO, () => Promise.resolve(hex('0aff')));
    await expect(askSidecar(socket, OPTIONS)).rejects.toMatchObject({ code: 'Rpc' });
  });

  test('is not there', async () => {
    await expect(askSidecar(join(dir, 'none'), OPTIONS)).rejects.toMatchObject({ code: 'DialFailed' });
  });
});
