import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { serveNotify } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';

import type { ReleaseLine } from '../../release-line.ts';
import { type BundledFile, readBundle } from '../../testing/bundle.ts';
import type { EmulatedLauncher } from '../api.ts';
import { readable } from '../recorder.ts';
import { type Fields, openReleaseSchema } from '../schema/release-schema.ts';
import { dialGrpc, type GrpcConnection, type RawAnswer } from '../transport/grpc-client.ts';
import { startEmulatedLauncher } from './launcher.ts';

interface Message {
  readonly label?: string;
  readonly method: string;
  readonly channel?: string;
  readonly request: { readonly base64: string };
  readonly response?: { readonly base64: string };
  readonly grpcStatus: { readonly code: number; readonly message: string };
}

const captures = readBundle('captures');

/** The messages to the launcher of a recorded scenario, in order. */
function messagesOf(scenario: string): readonly (readonly [name: string, message: Message])[] {
  return captures
    .filter(({ path }) => path.startsWith(`${scenario}/`) && /\/\d{3}-(?!notify)/.test(path))
    .toSorted((a, b) => a.path.localeCompare(b.path))
    .map(({ path, json }: BundledFile) => [path.slice(scenario.length + 1, -'.json'.length), json as Message]);
}

/** Messages whose answer hangs on something that an emulation does not have, and what that is. */
const NO_LIKENESS: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^02[02]-GetDomain(Stats)? running$/, 'asked while the first sync of v1.0.1 was still at work'],
  [/-Exec (exit code|missing binary|timeout)/, 'programs of a real guest'],
  [/-GetScreenshot text console|-GetScreenshot running/, 'pixels'],
  [/-GetVMStats/, 'recorded with the feature gate on; emulated launchers leave it off'],
  [/-VirtualMachineMemoryDump directory missing/, 'no file system behind the dump'],
  [/already gone/, 'answered or not depending on when the process ends'],
  [
    /while migrating|PauseVirtualMachine while|second request for the same|after migration/,
    'moments of a real migration',
  ],
  [
    /SyncMigrationTarget on a running launcher/,
    'stands on a user pause that stamps a migration end (launcher.md 35.4)',
  ],
];

interface Outcome {
  readonly code: number;
  readonly details: string;
  readonly response: Fields | undefined;
}

function outcomeOf(line: string, method: string, answer: RawAnswer): Outcome {
  const rpc = openReleaseSchema(line).rpcs.get(method);
  const response =
    answer.code === 0 && rpc !== undefined ? readable(rpc.decodeResponse(answer.bytes).fields) : undefined;
  return { code: answer.code, details: answer.details, response };
}

/** What has to be alike: how the call ended, its refusal, and which keys the answer and its documents have. */
function shapeOf({ code, details, response }: Outcome): unknown {
  return { code, details: generic(details), response: response === undefined ? undefined : shapeOfValue(response, '') };
}

/** Documents whose keys are a matter of the release; everything below that is the VM's own. */
const DOCUMENT_PLACES =
  /^\.domain(\.(ObjectMeta|Spec|Status|Spec\.(Devices|OS|Metadata|Metadata\.KubeVirt|CPU)))?$|^\.domainStats(\.(Cpu|Memory|MigrateDomainJobInfo))?$|^\.guestInfoResponse$|^$|^\.response$/;

function shapeOfValue(value: unknown, place: string): unknown {
  if (typeof value === 'string') return place === '.message' || place === '.response.message' ? generic(value) : 'text';
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return typeof value;
  if (!DOCUMENT_PLACES.test(place)) return 'object';
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOfAny(item, `${place}.${key}`)]));
}

/** Null and an object, null and a list: which of them is the VM's own matter. */
function shapeOfAny(value: unknown, place: string): unknown {
  if (DOCUMENT_PLACES.test(place) || !place.includes('.domain')) return shapeOfValue(value, place);
  return value === null || typeof value === 'object' ? 'null or object' : typeof value;
}

function generic(text: string): string {
  // protobuf-go writes a non-breaking space now and then, so that nobody relies on its words.
  return text
    .replaceAll('\u00a0', ' ')
    .replace(/'[^']*vectors[^']*'/g, "'…'")
    .replace(/finished at .*?,/, 'finished at …,');
}

async function replay(
  line: ReleaseLine,
  scenario: string,
  first: Uint8Array | undefined,
): Promise<{ launcher: EmulatedLauncher; answers: [string, unknown, unknown][] }> {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'compat-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  stack.use(
    await serveNotify(join(dir, 'share/domain-notify-pipe.sock'), {
      handleDomainEvent: async () => undefined,
      handleK8sEvent: async () => undefined,
    }),
  );
  const name = scenario.includes('migration') ? 'vm-mig' : scenario.includes('bad-') ? 'vm-bad' : 'vm1';
  const launcher = stack.use(
    await startEmulatedLauncher({
      line,
      vmi: { namespace: 'vectors', name, uid: '5e1f0a00-0000-4000-8000-00000000c001' },
      socketsDir: join(dir, 'sockets'),
      shareDir: join(dir, 'share'),
      lifeCycle: { agentMs: 1, migrationMs: 1 },
    }),
  );
  const connection = stack.use(await dialGrpc(launcher.cmdSocket, { authority: 'localhost', userAgent: 'test' }));
  if (first !== undefined) await call(connection, '/kubevirt.cmd.v1.Cmd/SyncVirtualMachine', first);
  const answers: [string, unknown, unknown][] = [];
  for (const [name, message] of messagesOf(scenario)) {
    await settle(launcher, name, message);
    const title = `${name} ${message.label ?? ''}`;
    const answer = await call(connection, message.method, Buffer.from(message.request.base64, 'base64'));
    if (NO_LIKENESS.some(([pattern]) => pattern.test(title))) continue;
    const recorded: RawAnswer = {
      code: message.grpcStatus.code,
      details: message.grpcStatus.message,
      bytes: Buffer.from(message.response?.base64 ?? '', 'base64'),
    };
    const { release } = launcher;
    const [now, then] = [outcomeOf(release, message.method, answer), outcomeOf(release, message.method, recorded)];
    answers.push([title, shapeOf(now), shapeOf(then)]);
    if (launcher.state.process !== 'running') break;
  }
  return { launcher, answers };
}

/** A real guest had had the time that an emulated one has to be waited for. */
async function settle(launcher: EmulatedLauncher, name: string, { label = '' }: Message): Promise<void> {
  if (/agent up|\d-FreezeVirtualMachine with/.test(`${name} ${label}`)) {
    await launcher.waitFor('the agent', ({ state }) => state.isAgentConnected);
  }
  if (/shut off|DeleteVirtualMachine undefine/.test(`${name} ${label}`)) {
    await launcher.waitFor('the end of the guest', ({ state }) => state.domain?.status === 'Shutoff');
  }
  if (label.includes('target running') && launcher.state.migration !== undefined) {
    launcher.receiveMigration();
    await launcher.waitFor('the guest', ({ state }) => state.domain?.status === 'Running');
    await launcher.waitFor('the agent', ({ state }) => state.isAgentConnected);
  }
}

function call(connection: GrpcConnection, method: string, request: Uint8Array): Promise<RawAnswer> {
  return connection.call(method, request, 5_000);
}

function syncOf(scenario: string): Uint8Array | undefined {
  const [, message] = messagesOf(scenario).find(([name]) => name.endsWith('-SyncVirtualMachine')) ?? [];
  return message === undefined ? undefined : Buffer.from(message.request.base64, 'base64');
}

test.each<[ReleaseLine, string, string | undefined]>([
  ['v1.0', 'v1.0.1/lifecycle', undefined],
  ['v1.3', 'v1.3.1/no-disks-info', undefined],
  ['v1.3', 'v1.3.1/malformed-requests', 'v1.0.1/lifecycle'],
  ['v1.9', 'v1.9.0/lifecycle', undefined],
  ['v1.9', 'v1.9.0/malformed-requests', 'v1.9.0/lifecycle'],
  ['v1.9', 'v1.9.0/bad-specification', undefined],
  ['v1.9', 'v1.9.0/migration-source', undefined],
  ['v1.9', 'v1.9.0/migration-target', undefined],
  ['v1.9', 'v1.9.0/migration-failed-target', undefined],
])('a launcher of %s answers %s as the real one did', async (line, scenario, before) => {
  const { answers } = await replay(line, scenario, before === undefined ? undefined : syncOf(before));
  expect(answers.length).toBeGreaterThan(3);
  expect(answers.map(([title, now]) => [title, now])).toEqual(answers.map(([title, , then]) => [title, then]));
});

test('the recorded crash of a memory sync without a maximum is an emulated one, too', async () => {
  const { launcher } = await replay('v1.9', 'v1.9.0/bad-specification', undefined);
  expect(launcher.state.crashReason).toContain('maxGuest');
});
