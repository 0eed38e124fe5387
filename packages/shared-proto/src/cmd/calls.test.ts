import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { CallResult } from '../calls.ts';
import { isConnectionLoss, type ProtoError } from '../errors.ts';
import { recordRequests, serveBytes } from '../testing/raw-services.ts';
import { tempSocket, type TempSocket, until } from '../testing/sockets.ts';
import type { CmdHandlers } from './api.ts';
import { connectCmd } from './client.ts';
import { vmiRequest } from './requests.ts';
import { CMD_RPC_NAMES, CMD_RPCS, type CmdRpc, methodName } from './rpcs.ts';
import { serveCmd } from './server.ts';

let socket: TempSocket;
beforeEach(() => {
  socket = tempSocket();
});
afterEach(() => socket[Symbol.dispose]());

function errorOf(result: CallResult<unknown>): ProtoError {
  if (result.ok) throw new Error('the call went well');
  return result.error;
}

/** A request that every launcher takes. */
const GOOD = { vmi: { vmiJson: Buffer.from('{}') }, options: {}, timeoutSeconds: 1 };
const requestOf = (rpc: CmdRpc): object =>
  ['MigrateVirtualMachine', 'BackupVirtualMachine', 'InjectLaunchSecret'].includes(rpc)
    ? { ...GOOD, options: Buffer.from('{}') }
    : GOOD;

/** Handlers for every RPC. */
function everyHandler(run: (rpc: CmdRpc, request: unknown) => Promise<void>): CmdHandlers {
  return Object.fromEntries(CMD_RPC_NAMES.map((rpc) => [methodName(rpc), (request: unknown) => run(rpc, request)]));
}

const STATUS_ERRORS: readonly CmdRpc[] = ['Exec', 'GuestPing', 'GetVMStats'];

describe('every RPC', () => {
  test('there are the 36 of v1.9.0', () => {
    expect(CMD_RPC_NAMES).toHaveLength(36);
  });

  test.each(CMD_RPC_NAMES)('%s reaches its handler and succeeds', async (rpc) => {
    const seen: string[] = [];
    await using _server = await serveCmd(
      socket.path,
      everyHandler(async (name) => void seen.push(name)),
    );
    using client = await connectCmd(socket.path);
    const result = await client.call(rpc, requestOf(rpc));
    expect(result.ok).toBe(true);
    expect(seen).toEqual([rpc]);
  });

  test.each(CMD_RPC_NAMES)('%s reports a failure in the words of KubeVirt', async (rpc) => {
    const fail = async (): Promise<void> => Promise.reject(new Error('no "agent"\n'));
    await using _server = await serveCmd(socket.path, everyHandler(fail));
    using client = await connectCmd(socket.path);
    const error = errorOf(await client.call(rpc, requestOf(rpc)));
    expect(error.detail).toBe('no "agent"\n');
    expect(error.code).toBe(STATUS_ERRORS.includes(rpc) ? 'Rpc' : 'Failed');
    const command = CMD_RPCS[rpc].command ?? rpc;
    const expected: Partial<Record<CmdRpc, string>> = {
      Exec: 'rpc error: code = Unknown desc = no "agent"\n',
      GuestPing: 'rpc error: code = Unknown desc = no "agent"\n',
      GetVMStats: 'unknown error encountered sending command GetVMStats: rpc error: code = Unknown desc = no "agent"\n',
      RedefineCheckpoint: 'RedefineCheckpoint failed: no "agent"\n',
    };
    expect(error.message).toBe(expected[rpc] ?? `server error. command ${command} failed: "no \\"agent\\"\\n"`);
  });

  test.each(CMD_RPC_NAMES)('FM-1.5 %s missing at an older launcher is Unimplemented', async (rpc) => {
    await using _server = await serveCmd(socket.path, {});
    using client = await connectCmd(socket.path);
    const error = errorOf(await client.call(rpc, requestOf(rpc)));
    expect(error.code).toBe('Unimplemented');
    expect(error.grpcCode).toBe(12);
    expect(isConnectionLoss(error)).toBe(false);
    expect(error.message).toMatch(/rpc error: code = Unimplemented desc = /);
    expect(error.message.startsWith('unknown error')).toBe(false);
  });
});

describe('deadlines', () => {
  test('are those of the v1.9.0 handler', () => {
    const byTimeout = Object.groupBy(CMD_RPC_NAMES, (rpc) => JSON.stringify(CMD_RPCS[rpc].timeout));
    expect(byTimeout['{"ms":5000}']).toEqual([
      'GetDomain',
      'GetDomainStats',
      'GetGuestInfo',
      'GetUsers',
      'GetFilesystems',
      'Ping',
      'GetQemuVersion',
      'GetSEVInfo',
      'GetLaunchMeasurement',
      'GetScreenshot',
      'GetVMStats',
    ]);
    expect(byTimeout['{"ms":60000}']).toEqual(['FreezeVirtualMachine']);
    expect(byTimeout['{"marginMs":5000}']).toEqual(['Exec', 'GuestPing']);
    expect(byTimeout['{"ms":20000}']).toHaveLength(22);
  });

  test('a slow launcher makes the call fail, and hears that nobody waits any more', async () => {
    let aborted = false;
    const slow: CmdHandlers = {
      ping: (_request, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            aborted = true;
            resolve();
          });
        }),
    };
    await using _server = await serveCmd(socket.path, slow);
    using client = await connectCmd(socket.path);
    const error = errorOf(await client.ping({}, { timeoutMs: 50 }));
    expect(error.code).toBe('DeadlineExceeded');
    expect(error.message).toMatch(
      /^unknown error encountered sending command Ping: rpc error: code = DeadlineExceeded desc = /,
    );
    await until(() => aborted, 'the handler has seen the end of the call');
  });

  test('the deadline of GuestPing comes from the request', async () => {
    let deadline = '';
    await using _server = await serveCmd(socket.path, {
      guestPing: async (request) => {
        deadline = `${request.timeoutSeconds}`;
      },
    });
    using client = await connectCmd(socket.path);
    expect((await client.guestPing({ domainName: 'a_b', timeoutSeconds: 3 })).ok).toBe(true);
    expect(deadline).toBe('3');
  });
});

describe('aborting', () => {
  test('a signal ends a call that runs', async () => {
    await using _server = await serveCmd(socket.path, { ping: () => new Promise<void>(() => undefined) });
    using client = await connectCmd(socket.path);
    const abort = new AbortController();
    const call = client.ping({}, { signal: abort.signal });
    abort.abort();
    expect(errorOf(await call).code).toBe('Aborted');
  });

  test('a signal that has fired already keeps the call from starting', async () => {
    await using _server = await serveCmd(socket.path, {});
    using client = await connectCmd(socket.path);
    expect(errorOf(await client.ping({}, { signal: AbortSignal.abort() })).code).toBe('Aborted');
  });

  test('closing the client ends its calls, and later ones fail at once', async () => {
    await using _server = await serveCmd(socket.path, { ping: () => new Promise<void>(() => undefined) });
    const client = await connectCmd(socket.path);
    const call = client.ping();
    client.close();
    client.close();
    expect(errorOf(await call).code).toBe('Closed');
    expect(errorOf(await client.ping()).code).toBe('Closed');
  });
});

describe('answers', () => {
  test.each<[string, CmdRpc, string, 'ok' | 'Failed' | 'Rpc']>([
    ['a missing nested response counts as success', 'GetDomain', '12027b7d', 'ok'],
    ['an empty nested response is a failure', 'GetDomain', '0a00', 'Failed'],
    ['an empty plain response is a failure', 'Ping', '', 'Failed'],
    ['a failure without words is a failure', 'Ping', '0800', 'Failed'],
    ['unknown fields do no harm', 'Ping', '080198060a', 'ok'],
    ['bytes that are no message are an error', 'Ping', 'ffffff', 'Rpc'],
    ['a message that ends too early is an error', 'GetDomain', '0aff', 'Rpc'],
    ['a screenshot that failed is noticed', 'GetScreenshot', '0a03120178', 'Failed'],
  ])('%s', async (_what, rpc, hex, expected) => {
    await using _server = await serveBytes(socket.path, { [rpc]: Buffer.from(hex, 'hex') });
    using client = await connectCmd(socket.path);
    const result = await client.call(rpc, requestOf(rpc));
    expect(result.ok ? 'ok' : result.error.code).toBe(expected);
  });

  test('what a failed answer says beside its failure is kept', async () => {
    await using _server = await serveCmd(socket.path, {
      redefineCheckpoint: async () => ({ response: { success: false, message: 'gone' }, checkpointInvalid: true }),
    });
    using client = await connectCmd(socket.path);
    const result = await client.redefineCheckpoint(GOOD);
    expect(result).toMatchObject({ ok: false, answer: { checkpointInvalid: true } });
  });

  test('an error without a message still travels as a failure with words', async () => {
    await using _server = await serveCmd(socket.path, {
      ping: async () => {
        throw new Error('');
      },
    });
    using client = await connectCmd(socket.path);
    expect(errorOf(await client.ping()).detail).toBe('unknown error');
  });

  test('64-bit numbers and maps arrive whole', async () => {
    const seen: unknown[] = [];
    await using _server = await serveCmd(socket.path, {
      getDomainDirtyRateStats: async () => ({ dirtyRateMbs: -(2n ** 62n) }),
      syncVirtualMachine: async ({ options }) =>
        void seen.push(options?.topology?.numa_cells, options?.interfaceDomainAttachment),
    });
    using client = await connectCmd(socket.path);
    const stats = await client.getDomainDirtyRateStats();
    expect(stats).toMatchObject({ ok: true, value: { dirtyRateMbs: -(2n ** 62n) } });
    const attachment = new Map([['constructor', 'tap']]);
    const topology = { numa_cells: [{ id: 1, memory: { amount: 2n ** 63n, unit: 'KiB' } }] };
    await client.syncVirtualMachine(vmiRequest('{}', { topology, interfaceDomainAttachment: attachment }));
    expect(seen[0]).toMatchObject([{ id: 1, memory: { amount: 2n ** 63n, unit: 'KiB' } }]);
    expect(seen[1]).toEqual(attachment);
  });
});

describe('requests that crash a launcher written in Go', () => {
  test('are completed before they are sent', async () => {
    const seen: Record<string, string> = {};
    const rpcs = ['PauseVirtualMachine', 'GetScreenshot', 'FinalizeVirtualMachineMigration'];
    await using _server = await recordRequests(socket.path, rpcs, (rpc, bytes) => {
      seen[rpc] = bytes.toString('hex');
    });
    using client = await connectCmd(socket.path);
    await client.pauseVirtualMachine();
    await client.getScreenshot();
    await client.finalizeVirtualMachineMigration({ vmi: { vmiJson: Buffer.from('{}') } });
    expect(seen).toEqual({
      PauseVirtualMachine: '0a001200',
      GetScreenshot: '0a00',
      FinalizeVirtualMachineMigration: '0a040a027b7d1200',
    });
  });

  test.each<[CmdRpc, object]>([
    ['Exec', { domainName: 'a_b', Command: 'ls', timeoutSeconds: 0 }],
    ['Exec', { domainName: 'a_b', Command: 'ls', timeoutSeconds: -3 }],
    ['MigrateVirtualMachine', { vmi: {}, options: Buffer.from(' null\n') }],
    ['BackupVirtualMachine', { vmi: {}, options: Buffer.from('null') }],
  ])('%s %j is not sent', async (rpc, request) => {
    await using _server = await serveCmd(
      socket.path,
      everyHandler(async () => undefined),
    );
    using client = await connectCmd(socket.path);
    expect(errorOf(await client.call(rpc, request)).code).toBe('BadRequest');
  });
});
