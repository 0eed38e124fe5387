import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson } from '@virtwire/vm-model';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../config/clock.ts';
import { systemClock } from '../config/clock.ts';
import type { CloudInitData } from '../disks/cloud-init-source.ts';
import type { SidecarMethods } from '../testing/hook-sidecar.ts';
import { infoMethod, serveSidecar, textOfField } from '../testing/hook-sidecar.ts';
import { writeFields } from '../testing/protobuf-fields.ts';
import { collectSidecars } from './collect.ts';
import { createSidecars } from './sidecars.ts';
import type { Sidecars } from './sidecars.ts';

const lines: Record<string, unknown>[] = [];
const log = createLogger('virt-launcher', {
  destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
});
const vmi = parseVmiJson(
  JSON.stringify({ metadata: { name: 'vm', namespace: 'ns', uid: '1' }, spec: { domain: { devices: {} }, odd: 1 } }),
);
const XML = '<domain type="kvm">\n\t<name>ns_vm</name>\n</domain>';
const DEFINE: readonly [string, number] = ['OnDefineDomain', 0];
const define = (version: string) => `/kubevirt.hooks.${version}.Callbacks/OnDefineDomain`;
const seedOf = (version: string) => `/kubevirt.hooks.${version}.Callbacks/PreCloudInitIso`;

let baseDir: string;
let served: AsyncDisposable[] = [];

async function serve(name: string, methods: SidecarMethods): Promise<string> {
  const socketPath = join(baseDir, name, 'hook.sock');
  served.push(await serveSidecar(socketPath, methods));
  return socketPath;
}

const collect = (count: number, timeoutMs = 10_000, clock: Clock = systemClock) =>
  collectSidecars({ clock, log }, { baseDir, count, timeoutMs });

async function sidecarsOf(count: number): Promise<Sidecars> {
  return createSidecars(await collect(count), log);
}

beforeEach(() => {
  baseDir = mkdtempSync(join(tmpdir(), 'virtwire-hooks-'));
  served = [];
  lines.length = 0;
});

afterEach(async () => {
  for (const server of served) await server[Symbol.asyncDispose]();
  rmSync(baseDir, { recursive: true });
});

describe('collecting sidecars', () => {
  test('each is asked for the newest version that both know, and for its hook points', async () => {
    await serve('b', infoMethod(['v1alpha2', 'v1alpha3', 'v9'], [DEFINE, ['Shutdown', 5]]));
    await serve('a', infoMethod(['v1alpha1'], [DEFINE]));
    writeFileSync(join(baseDir, 'a file beside them'), '');
    mkdirSync(join(baseDir, 'c', 'a directory'), { recursive: true });
    expect(await collect(2)).toEqual([
      { socketPath: join(baseDir, 'a/hook.sock'), version: 'v1alpha1', hookPoints: ['OnDefineDomain'] },
      { socketPath: join(baseDir, 'b/hook.sock'), version: 'v1alpha3', hookPoints: ['OnDefineDomain', 'Shutdown'] },
    ]);
    expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'Collected all requested hook sidecar sockets' });
  });

  test('a sidecar that listens later is waited for', async () => {
    const socketPath = join(baseDir, 'late/hook.sock');
    mkdirSync(join(baseDir, 'late'));
    writeFileSync(socketPath, '');
    const collected = collect(1);
    await expect
      .poll(() => lines.map((line) => line['msg']))
      .toContain(`Sidecar server might not be ready yet: ${socketPath}`);
    rmSync(socketPath);
    await serve('late', infoMethod(['v1alpha3'], [DEFINE]));
    expect(await collected).toHaveLength(1);
  });

  test('one that does not come in time ends the start, in the words of the model', async () => {
    await serve('one', infoMethod(['v1alpha3'], []));
    await expect(collect(2, 400)).rejects.toThrow(
      /^Failed to collect all expected sidecar hook sockets within given timeout$/,
    );
  });

  test('a version that nobody knows, a failing answer, no answer and no directory end it too', async () => {
    const versions = 'Exposed versions: [v0 v7], supported versions: [v1alpha3 v1alpha2 v1alpha1]';
    await serve('odd', infoMethod(['v0', 'v7'], []));
    await expect(collect(1)).rejects.toThrow(`Hook sidecar does not expose a supported version. ${versions}`);
    rmSync(join(baseDir, 'odd'), { recursive: true });
    await serve('none', {});
    await expect(collect(1)).rejects.toThrow('rpc error: code = Unimplemented desc = ');
    rmSync(join(baseDir, 'none'), { recursive: true });
    await serve('mute', { '/kubevirt.hooks.info.Info/Info': () => new Promise(() => undefined) });
    await expect(collect(1)).rejects.toThrow(/^rpc error: code = DeadlineExceeded desc = context deadline exceeded$/);
    const missing = { baseDir: join(baseDir, 'x'), count: 1, timeoutMs: 1 };
    await expect(collectSidecars({ clock: systemClock, log }, missing)).rejects.toThrow(
      /^open .*\/x: no such file or directory$/,
    );
  });

  test('a launcher that is told to end waits no longer', async () => {
    const deps = { clock: systemClock, log, signal: AbortSignal.abort() };
    expect(await collectSidecars(deps, { baseDir, count: 1, timeoutMs: 60_000 })).toEqual([]);
  });
});

describe('a domain before it is defined', () => {
  const seen: { xml: string; vmi: unknown }[] = [];
  const change =
    (word: string): SidecarMethods[string] =>
    (request) => {
      seen.push({ xml: textOfField(request, 1), vmi: JSON.parse(textOfField(request, 2)) });
      return writeFields([1, textOfField(request, 1).replace('</domain>', `<${word}/></domain>`)]);
    };

  beforeEach(() => {
    seen.length = 0;
  });

  test.each(['v1alpha1', 'v1alpha2', 'v1alpha3'])('is changed by a sidecar of %s, word for word', async (version) => {
    await serve('a', { ...infoMethod([version], [DEFINE]), [define(version)]: change('odd') });
    const sidecars = await sidecarsOf(1);
    expect(await sidecars.onDefineDomain(vmi, XML)).toBe(XML.replace('</domain>', '<odd/></domain>'));
    expect(seen[0]?.xml).toBe(XML);
    expect(seen[0]?.vmi).toMatchObject({ metadata: { name: 'vm' }, spec: { odd: 1 } });
  });

  test('goes through all sidecars in the order in which they were found, whatever their priorities', async () => {
    await serve('b', { ...infoMethod(['v1alpha3'], [['OnDefineDomain', 99]]), [define('v1alpha3')]: change('second') });
    await serve('a', { ...infoMethod(['v1alpha2'], [['OnDefineDomain', 1]]), [define('v1alpha2')]: change('first') });
    await serve('c', infoMethod(['v1alpha3'], [['Shutdown', 1]]));
    const sidecars = await sidecarsOf(3);
    expect(await sidecars.onDefineDomain(vmi, XML)).toContain('<first/><second/></domain>');
    expect(seen[1]?.xml).toContain('<first/>');
  });

  test.each<[string, SidecarMethods[string], RegExp]>([
    ['fails', () => Promise.reject(new Error('nö: 100%')), /^rpc error: code = Unknown desc = nö: 100%$/],
    [
      'answers no XML',
      () => writeFields([1, 'nonsense']),
      /^hook sidecar .*hook\.sock did not answer with a domain: EOF$/,
    ],
    [
      'answers another document',
      () => writeFields([1, '<vm/>']),
      /did not answer with a domain: .*expected element type <domain> but have <vm>/,
    ],
    ['answers nothing', () => Buffer.alloc(0), /did not answer with a domain: EOF$/],
    ['answers bytes that are no message', () => Buffer.from([0x0a, 0xff]), /^rpc error: code = Internal desc = grpc: /],
    [
      'answers too much',
      () => writeFields([1, Buffer.alloc(5 * 1024 * 1024)]),
      /^rpc error: code = ResourceExhausted desc = grpc: received message larger than max \(\d+ vs\. 4194304\)$/,
    ],
  ])('is not defined when a sidecar %s', async (_what, method, text) => {
    await serve('a', { ...infoMethod(['v1alpha3'], [DEFINE]), [define('v1alpha3')]: method });
    const sidecars = await sidecarsOf(1);
    await expect(sidecars.onDefineDomain(vmi, XML)).rejects.toThrow(text);
  });

  test('is not defined when a sidecar dies in the call, or was gone before it', async () => {
    const dying = Promise.withResolvers<undefined>();
    const method = () => {
      dying.resolve(undefined);
      return new Promise<Buffer>(() => undefined);
    };
    await serve('a', { ...infoMethod(['v1alpha3'], [DEFINE]), [define('v1alpha3')]: method });
    const sidecars = await sidecarsOf(1);
    const call = sidecars.onDefineDomain(vmi, XML);
    const rejected = expect(call).rejects.toThrow(/^rpc error: code = Unavailable desc = /);
    await dying.promise;
    await served.pop()?.[Symbol.asyncDispose]();
    await rejected;
    await expect(sidecars.onDefineDomain(vmi, XML)).rejects.toThrow(/could not connect to .*hook\.sock: connect E/);
    expect(lines.at(-1)).toMatchObject({ level: 'error', msg: 'Failed to call OnDefineDomain' });
  });
});

describe("cloud-init's seed data", () => {
  const data: CloudInitData = {
    kind: 'noCloud',
    volume: 'ci',
    userData: Buffer.from('#u'),
    networkData: Buffer.from('net'),
    publicKeys: ['k'],
  };
  const PRE: readonly [string, number] = ['PreCloudInitIso', 0];

  test.each(['v1alpha2', 'v1alpha3'])('are changed by the first sidecar of %s alone', async (version) => {
    const seen: unknown[] = [];
    const method: SidecarMethods[string] = (request) => {
      const whole = JSON.parse(textOfField(request, 3)) as Record<string, unknown>;
      seen.push(whole, JSON.parse(textOfField(request, 1)), JSON.parse(textOfField(request, 2)));
      const metadata = { ...(whole['NoCloudMetaData'] as object), 'local-hostname': 'changed' };
      return writeFields([3, JSON.stringify({ ...whole, UserData: '#new', NoCloudMetaData: metadata })]);
    };
    await serve('a', infoMethod(['v1alpha1'], [PRE]));
    await serve('b', { ...infoMethod([version], [PRE]), [seedOf(version)]: method });
    await serve('c', { ...infoMethod([version], [PRE]), [seedOf(version)]: method });
    const sidecars = await sidecarsOf(3);
    const changed = await sidecars.preCloudInitIso(vmi, data);
    expect(seen).toHaveLength(3);
    expect(seen[0]).toEqual({
      DataSource: 'noCloud',
      NoCloudMetaData: {
        'instance-id': expect.any(String) as string,
        'local-hostname': 'vm',
        'public-keys': { '0': 'k' },
      },
      ConfigDriveMetaData: null,
      UserData: '#u',
      NetworkData: 'net',
      DevicesData: null,
      VolumeName: 'ci',
    });
    expect(seen[1]).toEqual({ userData: '#u', networkData: 'net' });
    expect(changed).toMatchObject({ kind: 'noCloud', volume: 'ci' });
    expect(`${changed?.userData.toString()} ${changed?.networkData.toString()}`).toBe('#new net');
    expect(changed?.metadata).toMatchObject({ 'local-hostname': 'changed', 'public-keys': { '0': 'k' } });
  });

  test.each<[string, Buffer, object]>([
    [
      'the old object alone',
      writeFields([1, '{"userData":"#old","networkData":""}']),
      { userData: '#old', networkData: '', metadata: 'minimal' },
    ],
    [
      'an object without metadata and the old one',
      writeFields([1, '{"userData":"#old"}'], [3, '{"UserData":"#new"}']),
      { userData: '#old', metadata: 'minimal' },
    ],
    [
      'metadata for the other kind',
      writeFields([3, '{"UserData":"#x","DataSource":"configDrive","ConfigDriveMetaData":{"instance_id":"i"}}']),
      { kind: 'configDrive', userData: '#x', networkData: '', metadata: { instance_id: 'i' } },
    ],
  ])('may come back as %s', async (_what, answer, expected) => {
    await serve('a', { ...infoMethod(['v1alpha3'], [PRE]), [seedOf('v1alpha3')]: () => answer });
    const changed = await (await sidecarsOf(1)).preCloudInitIso(vmi, data);
    const texts = { userData: changed?.userData.toString(), networkData: changed?.networkData.toString() };
    expect({ ...changed, ...texts }).toMatchObject(expected);
  });

  test('data that are no text outlive a sidecar that leaves them alone', async () => {
    const packed = gzipSync('#cloud-config');
    const method: SidecarMethods[string] = (request) => writeFields([3, textOfField(request, 3)]);
    await serve('a', { ...infoMethod(['v1alpha3'], [PRE]), [seedOf('v1alpha3')]: method });
    const changed = await (await sidecarsOf(1)).preCloudInitIso(vmi, { ...data, userData: packed });
    expect(changed?.userData).toEqual(packed);
    expect(changed?.metadata).toMatchObject({ 'local-hostname': 'vm' });
  });

  test.each<[string, Buffer, RegExp]>([
    ['no JSON', writeFields([3, '{"UserData":']), /unexpected end of JSON input/],
    ['a list', writeFields([3, '[]']), /^json: cannot unmarshal/],
    ['a number for the user data', writeFields([3, '{"UserData":1}']), /^json: cannot unmarshal/],
    ['nothing', Buffer.alloc(0), /^UserData or NetworkData is required for cloud-init data source$/],
    [
      'a kind that is none',
      writeFields([3, '{"UserData":"x","DataSource":"floppy","NoCloudMetaData":{}}']),
      /^Invalid cloud-init data source: 'floppy'$/,
    ],
  ])('%s is refused', async (_what, answer, text) => {
    await serve('a', { ...infoMethod(['v1alpha3'], [PRE]), [seedOf('v1alpha3')]: () => answer });
    await expect((await sidecarsOf(1)).preCloudInitIso(vmi, data)).rejects.toThrow(text);
  });

  test('a VM without them bothers no sidecar', async () => {
    await serve('a', infoMethod(['v1alpha3'], [PRE]));
    expect(await (await sidecarsOf(1)).preCloudInitIso(vmi, undefined)).toBeUndefined();
  });
});

test('after the VM all sidecars of v1alpha3 are told, and none can make it fail', async () => {
  let told = 0;
  const shutdown = '/kubevirt.hooks.v1alpha3.Callbacks/Shutdown';
  const points = [['Shutdown', 0]] as const;
  await serve('a', { ...infoMethod(['v1alpha3'], points), [shutdown]: () => Promise.reject(new Error('no')) });
  await serve('b', infoMethod(['v1alpha2'], points));
  await serve('c', { ...infoMethod(['v1alpha3'], points), [shutdown]: () => (told++, Buffer.alloc(0)) });
  await (await sidecarsOf(3)).shutdown();
  expect(told).toBe(1);
  const errors = lines.filter((line) => line['level'] === 'error').map((line) => line['msg']);
  expect(errors.sort()).toEqual(['Failed to run Shutdown', 'Unsupported callback version: v1alpha2']);
});
