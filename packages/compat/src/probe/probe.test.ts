import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CMD_RPC_NAMES, serveCmd, serveNotify } from '@virtwire/shared-proto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { factsOf } from '../emulate/lines/lines.ts';
import { openReleaseSchema } from '../emulate/schema/release-schema.ts';
import { serveGrpc } from '../emulate/transport/grpc-server.ts';
import { createNodeDirs, NODE_NAME } from '../matrix/node-dirs.ts';
import { startOurHandler } from '../matrix/our-handler.ts';
import { POD_UID, scheduledVmi, VM } from '../matrix/test-vmi.ts';
import { VmiStore } from '../matrix/vmi-store.ts';
import { RELEASE_LINES } from '../release-line.ts';
import { HandlerScene } from '../scenarios/handler-scene.ts';
import { type ProbeOptions, probeLauncher, probeNotifyServer, type ProbeResult } from './probe.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'vprobe'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const verdict = ({ findings }: ProbeResult, rpc: string): string =>
  findings.find((finding) => finding.rpc === rpc)?.verdict ?? 'none';
const deviations = ({ findings }: ProbeResult): readonly string[] =>
  findings.filter((finding) => finding.verdict === 'deviates').map(({ rpc, detail }) => `${rpc}: ${detail}`);

test.each(RELEASE_LINES)('leads a VM through the whole contract of a launcher of %s', async (line) => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({ line, vmi: VM, socketsDir, shareDir });
  const result = await probeLauncher(launcher.cmdSocket, { isUnsafe: true, vmi: scheduledVmi() });
  expect(deviations(result)).toEqual([]);
  expect(result.lines).toContain(line);
  const { cmdRpcs } = openReleaseSchema(factsOf(line).release.value);
  for (const rpc of CMD_RPC_NAMES) {
    expect(`${rpc} ${verdict(result, rpc)}`).toBe(`${rpc} ${cmdRpcs.has(rpc) ? 'supported' : 'missing'}`);
  }
  // It really was done, in an order that left a VM for what came later.
  expect(launcher.state.crashReason).toBeUndefined();
  expect(launcher.state.domain).toBeUndefined();
  expect(launcher.calls.filter(({ rpc, code }) => rpc === 'PauseVirtualMachine' && code === 0).length).toBeGreaterThan(
    1,
  );
});

test('sends nothing but questions unless it is told to', async () => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({ line: 'v1.9', vmi: VM, socketsDir, shareDir });
  const result = await probeLauncher(launcher.cmdSocket);
  expect(launcher.calls.every(({ rpc }) => /^(Info|Ping|Get\w+|NoSuchMethod)$/.test(rpc))).toBe(true);
  expect(verdict(result, 'KillVirtualMachine')).toBe('not asked');
  expect(deviations(result)).toEqual([]);
});

test('asks a launcher about its VM, and does not touch it without being given its VMI', async () => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({ line: 'v1.9', vmi: VM, socketsDir, shareDir });
  await using handler = await startEmulatedHandler({
    ...{ line: 'v1.9', podsDir: dirs.podsDir, shareDir: dirs.shareDir, podShareDir: () => shareDir },
  });
  await handler.run('start', scheduledVmi() as unknown as Readonly<Record<string, unknown>>, POD_UID);
  const result = await probeLauncher(launcher.cmdSocket);
  expect(deviations(result)).toEqual([]);
  expect(verdict(result, 'GetScreenshot')).toBe('supported');
  const refused = probeLauncher(launcher.cmdSocket, { isUnsafe: true });
  await expect(refused).rejects.toThrow('runs ns1/vm1: give its VMI, which will be removed');
  expect(launcher.state.domain?.status).toBe('Running');
});

describe('a launcher that deviates', () => {
  test.each<[string, Parameters<typeof serveCmd>[1], string, RegExp]>([
    ['accepts what it must refuse', { exec: () => ({ exitCode: 0 }) }, 'Exec', /without a domain: it succeeds/],
    [
      'refuses what it must accept',
      {
        killVirtualMachine: () => {
          throw new Error('out of order');
        },
      },
      'KillVirtualMachine',
      /without a domain: it refuses: out of order/,
    ],
    [
      'answers without what was asked for',
      { getQemuVersion: () => ({ version: '' }) },
      'GetQemuVersion',
      /without a version/,
    ],
    ['answers broken JSON', { getUsers: () => ({ guestUserListResponse: '[{' }) }, 'GetUsers', /cannot be read/],
  ])('is told when it %s', async (_title, handlers, rpc, text) => {
    const socket = join(dir, 'c');
    const server = await serveCmd(socket, { ...handlers, ping: () => undefined });
    const { findings } = await probeLauncher(socket, { isUnsafe: true });
    const found = findings.find((finding) => finding.rpc === rpc);
    expect(found).toMatchObject({ verdict: 'deviates', detail: expect.stringMatching(text) as string });
    await server.stop(0);
  });

  test.each(RELEASE_LINES.filter((line) => ['v1.0', 'v1.5', 'v1.9'].includes(line)))(
    'is told by the RPC that fails, in %s',
    async (line) => {
      using dirs = createNodeDirs();
      const { socketsDir, shareDir } = dirs.pod(POD_UID);
      const faults = { fail: { PauseVirtualMachine: 'out of order', GetDomain: '' } };
      await using launcher = await startEmulatedLauncher({ line, vmi: VM, socketsDir, shareDir, faults });
      const result = await probeLauncher(launcher.cmdSocket, { isUnsafe: true, vmi: scheduledVmi() });
      expect(deviations(result).join('\n')).toMatch(/PauseVirtualMachine: .*out of order/);
      expect(deviations(result).join('\n')).toContain('GetDomain: asked: it refuses: without a text');
    },
    120_000,
  );
});

describe('a hostile peer', () => {
  async function against(serve: (socket: Socket) => void, run: (path: string) => Promise<void>): Promise<void> {
    const path = join(dir, 'h');
    const open = new Set<Socket>();
    const server = createServer((socket) => {
      open.add(socket.on('error', () => undefined));
      serve(socket);
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    await run(path);
    for (const socket of open) socket.destroy();
    server.close();
  }

  test.each<[string, (socket: Socket) => void]>([
    ['says nothing', () => undefined],
    ['speaks another protocol', (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['hangs up', (socket) => void socket.destroy()],
    ['floods', (socket) => void socket.write(Buffer.alloc(1_048_576, 0xff))],
  ])('that %s is not checked, and it is told where', async (_title, serve) => {
    await against(serve, async (path) => {
      await expect(probeLauncher(path)).rejects.toThrow(`nobody answers at ${path} within 2 s`);
      await expect(probeNotifyServer(path)).rejects.toThrow(`nobody answers at ${path} within 2 s`);
    });
  });

  test.each<[string, Parameters<typeof serveGrpc>[1], RegExp]>([
    ['never answers', () => Promise.resolve({ kind: 'silence' }), /has not answered 2 calls in a row/],
    [
      'answers garbage',
      () => Promise.resolve({ kind: 'message', bytes: Buffer.alloc(1_000, 0xff) }),
      /its answer is no message/,
    ],
    [
      'answers with a status',
      () => Promise.resolve({ kind: 'status', code: 7, details: 'no' }),
      /it answers gRPC code 7: no/,
    ],
    [
      'answers more than anybody takes',
      () => Promise.resolve({ kind: 'message', bytes: Buffer.alloc(5_000_000) }),
      /larger than max/,
    ],
  ])(
    'that %s is a finding, and the probe ends',
    async (_title, answer, text) => {
      const socket = join(dir, 'g');
      const server = await serveGrpc(socket, answer);
      const result = await probeLauncher(socket, { isUnsafe: true });
      expect(deviations(result).join('\n')).toMatch(text);
      await server.kill();
    },
    60_000,
  );
});

describe('towards a notify server', () => {
  const good = {
    handleDomainEvent: ({ domainJSON }: { domainJSON: Uint8Array }): undefined => {
      const text = Buffer.from(domainJSON).toString();
      if (
        text !== '' &&
        (JSON.parse(text) as { Spec?: { Memory?: { Value?: unknown } } }).Spec?.Memory?.Value === 'x'
      ) {
        throw new Error('json: cannot unmarshal string');
      }
    },
    handleK8sEvent: ({ eventJSON }: { eventJSON: Uint8Array }) => {
      try {
        JSON.parse(Buffer.from(eventJSON).toString());
      } catch (caught) {
        throw new Error(`Error unmarshalling k8s event: ${String(caught)}`, { cause: caught });
      }
      throw new Error('VMI not found');
    },
  };

  test.each([false, true])('plays a launcher, unsafe %s', async (isUnsafe) => {
    const socket = join(dir, 'n');
    const types: string[] = [];
    const handleDomainEvent = (event: { domainJSON: Uint8Array; eventType: string }): undefined => {
      types.push(event.eventType);
      good.handleDomainEvent(event);
    };
    const server = await serveNotify(socket, { ...good, handleDomainEvent });
    const result = await probeNotifyServer(socket, { isUnsafe });
    expect(deviations(result)).toEqual([]);
    for (const rpc of ['Info', 'HandleDomainEvent', 'HandleK8sEvent']) expect(verdict(result, rpc)).toBe('supported');
    expect(types.includes('ADDED')).toBe(isUnsafe);
    await server.stop(0);
  });

  test.each([false, true])('knows our handler as one, unsafe %s', async (isUnsafe) => {
    using dirs = createNodeDirs();
    const settings = { nodeName: NODE_NAME, dirs, store: new VmiStore(), resyncMs: 300_000, log: () => undefined };
    const handler = await startOurHandler(settings);
    const result = await probeNotifyServer(join(dirs.shareDir, 'domain-notify.sock'), { isUnsafe });
    await handler.stop();
    expect(deviations(result)).toEqual([]);
    for (const { verdict: found } of result.findings) expect(found).toBe('supported');
  });

  const foreignVmi = scheduledVmi((vmi) => {
    vmi.metadata = { ...vmi.metadata, name: 'vm2', uid: '0d9a1f60-5b1e-4c1b-9c1d-0242ac120003' };
  });

  test.each<[what: string, options: ProbeOptions, isOfThePipe: boolean]>([
    ['what it sends without --unsafe', {}, false],
    ['a VM of the probe', { isUnsafe: true }, false],
    ['another VM', { isUnsafe: true, vmi: foreignVmi }, false],
    ["the pipe's own VM", { isUnsafe: true, vmi: scheduledVmi() }, true],
  ])('the pipe of a pod refuses events about other VMs, as it should: %s', async (_what, options, isOfThePipe) => {
    await using scene = new HandlerScene(
      {
        ...{ pair: { handler: 'new', launcher: 'v1.9' }, line: 'v1.9', note: () => undefined },
        ...{ emulations: { startHandler: startEmulatedHandler, startLauncher: startEmulatedLauncher } },
        signal: new AbortController().signal,
      },
      startOurHandler,
    );
    await scene.runVm();
    const result = await probeNotifyServer(join(scene.dirs.pod(POD_UID).shareDir, 'domain-notify-pipe.sock'), options);
    expect(deviations(result)).toEqual([]);
    for (const { verdict: found } of result.findings) expect(found).toBe('supported');
    const told = (rpc: string): string => result.findings.find((finding) => finding.rpc === rpc)?.detail ?? '';
    const owner = `refused as it should be, the pipe belongs to ns1/vm1 (${VM.uid})`;
    expect(told('HandleK8sEvent')).toContain(`an event of an unknown VM: ${owner}`);
    if (options.isUnsafe !== true) return;
    expect(told('HandleDomainEvent').includes(`ADDED: ${owner}`)).toBe(!isOfThePipe);
    expect(told('HandleK8sEvent').includes(`an event of the VM: ${owner}`)).toBe(!isOfThePipe);
  });

  test.each<[what: string, words: string, told: RegExp]>([
    [
      'its own VM',
      `this pipe belongs to ns1/vm1 (${VM.uid}), not to ns1/vm1 (${VM.uid})`,
      /ADDED: it refuses: this pipe/,
    ],
    ['somebody who sent nothing', 'this pipe belongs to a/b (u), not to c/d (u)', /unknown VM: it refuses with other/],
  ])('tells of a pipe that refuses %s', async (_what, words, told) => {
    const socket = join(dir, 'n');
    const refuse = (): never => {
      throw new Error(words);
    };
    const server = await serveNotify(socket, { handleDomainEvent: refuse, handleK8sEvent: refuse });
    const result = await probeNotifyServer(socket, { isUnsafe: true, vmi: scheduledVmi() });
    expect(deviations(result).join('\n')).toMatch(told);
    await server.stop(0);
  });

  test.each(RELEASE_LINES)('knows the handler of %s', async (line) => {
    using dirs = createNodeDirs();
    const { shareDir } = dirs.pod(POD_UID);
    await using handler = await startEmulatedHandler({
      ...{ line, podsDir: dirs.podsDir, shareDir: dirs.shareDir, podShareDir: () => shareDir },
    });
    const result = await probeNotifyServer(handler.notifySocket, { isUnsafe: true });
    expect(deviations(result)).toEqual([]);
    expect(handler.events.some(({ type }) => type === 'ADDED')).toBe(true);
  });

  test('tells of one that takes what it must refuse', async () => {
    const socket = join(dir, 'n');
    const server = await serveNotify(socket, { handleDomainEvent: () => undefined, handleK8sEvent: () => undefined });
    const result = await probeNotifyServer(socket);
    expect(deviations(result).join('\n')).toMatch(/HandleK8sEvent: an event that is no JSON: it takes it/);
    await server.stop(0);
  });
});
