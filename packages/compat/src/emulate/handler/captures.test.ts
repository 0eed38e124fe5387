import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import type { ReleaseLine } from '../../release-line.ts';
import { readBundle } from '../../testing/bundle.ts';
import type { HandlerAction, LifeCycle, RecordedCall } from '../api.ts';
import { startEmulatedLauncher } from '../launcher/launcher.ts';
import { readable } from '../recorder.ts';
import { type Fields, openReleaseSchema } from '../schema/release-schema.ts';
import { startEmulatedHandler } from './handler.ts';

interface Message {
  readonly method: string;
  readonly channel: string;
  readonly timeoutMsLeft?: number;
  readonly request: { readonly base64: string };
}

const captures = readBundle('captures');

/** What a real handler of a release called in a scenario, in order. */
function recordedCalls(scenario: string): readonly { rpc: string; request: Fields; timeoutS: number }[] {
  const schema = openReleaseSchema('v1.9.0');
  return captures
    .filter(({ path }) => path.startsWith(`handlers/${scenario}/`) && /\/\d{3}-(?!notify)/.test(path))
    .toSorted((a, b) => a.path.localeCompare(b.path))
    .map(({ json }) => {
      const { method, request, timeoutMsLeft = 0 } = json as Message;
      const fields = schema.rpcs.get(method)?.decodeRequest(Buffer.from(request.base64, 'base64')).fields ?? {};
      return {
        rpc: method.slice(method.lastIndexOf('/') + 1),
        request: readable(fields),
        timeoutS: Math.ceil(timeoutMsLeft / 1_000),
      };
    });
}

/** The VMI of the scenario, as the handler sent it first. */
function recordedVmi(scenario: string): Record<string, unknown> {
  const sync = recordedCalls(scenario).find(({ rpc }) => rpc === 'SyncVirtualMachine');
  const vmi = structuredClone((sync?.request['vmi'] as { vmiJson: Record<string, unknown> }).vmiJson);
  (vmi['status'] as Record<string, unknown>)['activePods'] = { pod: 'node01' };
  return vmi;
}

async function emulate(
  line: ReleaseLine,
  vmi: Record<string, unknown>,
  actions: readonly HandlerAction[],
  lifeCycle: LifeCycle = {},
): Promise<readonly RecordedCall[]> {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'compat-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, 'pods'));
  const shareDir = join(dir, 'root');
  const handler = stack.use(
    await startEmulatedHandler({
      line,
      podsDir: join(dir, 'pods'),
      shareDir: join(dir, 's'),
      podShareDir: () => shareDir,
    }),
  );
  const { namespace, name, uid } = vmi['metadata'] as { namespace: string; name: string; uid: string };
  const socketsDir = join(dir, 'pods/pod/volumes/kubernetes.io~empty-dir/sockets');
  stack.use(
    await startEmulatedLauncher({ line: 'v1.9', vmi: { namespace, name, uid }, socketsDir, shareDir, lifeCycle }),
  );
  for (const action of actions) {
    expect(await handler.run(action, vmi, 'pod')).toMatchObject({ action, ok: true, error: undefined });
  }
  return handler.calls.filter(({ channel }) => channel === 'cmd');
}

/** The order without what hangs on time: repeats, and guest info, which is asked whenever something happens. */
function orderOf(calls: readonly { readonly rpc: string }[]): readonly string[] {
  // A Ping that nothing follows: by then the guest was on its way out.
  const rpcs = calls
    .map(({ rpc }) => rpc)
    .filter((rpc) => rpc !== 'GetGuestInfo')
    .filter((rpc, i, all) => rpc !== 'Ping' || all[i + 1] !== 'Ping');
  const pairs: string[] = [];
  for (let i = 0; i < rpcs.length; i++) {
    const pair = rpcs[i] === 'Ping' ? `Ping ${rpcs[++i] ?? ''}` : (rpcs[i] ?? '');
    if (pairs.at(-1) !== pair) pairs.push(pair);
  }
  return pairs;
}

/** All field names of a message, at every depth. */
function namesOf(value: unknown, path = ''): readonly string[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [path];
  if (Array.isArray(value)) return value.flatMap((item: unknown) => namesOf(item, `${path}[]`));
  return [path, ...Object.entries(value).flatMap(([key, item]) => namesOf(item, `${path}.${key}`))];
}

test.each<[ReleaseLine, string, LifeCycle]>([
  ['v1.3', 'v1.3.1/lifecycle', {}],
  ['v1.6', 'v1.6.6/lifecycle', {}],
  ['v1.3', 'v1.3.1/grace-expired', { shutdownMs: 'never' }],
  ['v1.6', 'v1.6.6/grace-expired', { shutdownMs: 'never' }],
])('a handler of %s ends a VM in the order of %s', async (line, scenario, lifeCycle) => {
  const vmi = recordedVmi(scenario);
  (vmi['spec'] as Record<string, unknown>)['terminationGracePeriodSeconds'] = lifeCycle.shutdownMs === 'never' ? 1 : 30;
  const recorded = recordedCalls(scenario);
  const ending = recorded.slice(recorded.findIndex(({ rpc }) => rpc === 'Ping'));
  const calls = await emulate(line, vmi, ['start', 'stop'], lifeCycle);
  const emulated = calls.slice(calls.findIndex(({ rpc }) => rpc === 'Ping'));
  expect(orderOf(emulated)).toEqual(orderOf(ending));
});

test.each<[ReleaseLine, string]>([
  ['v1.3', 'v1.3.1/lifecycle'],
  ['v1.6', 'v1.6.6/lifecycle'],
  ['v1.3', 'v1.3.1/container-disk'],
])('a handler of %s sends the options of %s, first and later', async (line, scenario) => {
  const [first, second] = recordedCalls(scenario).filter(({ rpc }) => rpc === 'SyncVirtualMachine');
  const calls = await emulate(line, recordedVmi(scenario), ['start']);
  const schema = openReleaseSchema('v1.9.0').cmdRpcs.get('SyncVirtualMachine');
  const sent = calls
    .filter(({ rpc }) => rpc === 'SyncVirtualMachine')
    .map(({ requestBytes }) => schema?.decodeRequest(requestBytes).fields['options']);
  const names = (options: unknown): readonly string[] => [...new Set(namesOf(options))].toSorted();
  expect(names(sent[0])).toEqual(names(first?.request['options']));
  expect(names(sent[1])).toEqual(names(second?.request['options']));
});

test.each<[ReleaseLine, string]>([
  ['v1.3', 'v1.3.1/lifecycle'],
  ['v1.6', 'v1.6.6/lifecycle'],
])('a handler of %s gives its calls the deadlines of %s', async (line, scenario) => {
  const recorded = new Map(recordedCalls(scenario).map(({ rpc, timeoutS }) => [rpc, timeoutS]));
  const actions = ['start', 'pause', 'unpause', 'freeze', 'unfreeze', 'softReboot', 'guestQueries', 'stop'] as const;
  const calls = await emulate(line, recordedVmi(scenario), actions, { agentMs: 0 });
  const common = calls.filter(({ rpc }) => recorded.has(rpc));
  expect(new Set(common.map(({ rpc }) => rpc)).size).toBeGreaterThan(9);
  expect(common.map(({ rpc, timeoutMs = 0 }) => [rpc, timeoutMs / 1_000])).toEqual(
    common.map(({ rpc }) => [rpc, recorded.get(rpc)]),
  );
});

test('a handler that starts again lists domains first, then takes the VM over', async () => {
  const recorded = recordedCalls('v1.3.1/handler-restart').map(({ rpc }) => rpc);
  const restart = recorded.indexOf('GetDomain') - 1;
  expect(recorded.slice(restart, restart + 4)).toEqual(['Info', 'GetDomain', 'Info', 'SyncVirtualMachine']);
  const calls = await emulate('v1.3', recordedVmi('v1.3.1/handler-restart'), ['resync', 'start']);
  expect(calls.slice(0, 4).map(({ rpc }) => rpc)).toEqual(recorded.slice(restart, restart + 4));
});
