import { execFileSync } from 'node:child_process';
import { chownSync, copyFileSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runTool } from '@virtwire/host';
import { CMD_RPC_NAMES, CMD_RPCS, cmdV1 } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';
import { parseJson } from '@virtwire/vm-model';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFiles } from '../src/testing/bundle.ts';
import type { Answer } from './support/equivalence.ts';
import { shapeDifferences, valueDifferences, withoutVarying } from './support/equivalence.ts';
import { hasGuest, provideKernel } from './support/guest.ts';
import { callRaw } from './support/raw-call.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const VM1 = ['--name', 'vm1', '--namespace', 'vectors', '--uid', '5e1f0a00-0000-4000-8000-00000000c001'];
const BAD = ['--name', 'vm-bad', '--namespace', 'vectors', '--uid', '5e1f0a00-0000-4000-8000-00000000c006'];
const QEMU_UID = 107;

/** A recorded call and its answer. */
interface Capture {
  readonly seq: number;
  readonly label?: string;
  readonly channel: string;
  readonly method: string;
  readonly request: { readonly base64: string };
  readonly response?: {
    readonly protobufJSON: Readonly<Record<string, unknown>>;
    readonly embedded?: Readonly<Record<string, unknown>>;
  };
  readonly grpcStatus: { readonly code: number; readonly message: string };
}

type Waits = Readonly<Record<number, (pod: LauncherPod) => Promise<unknown>>>;

/** A scenario, and how our answers may differ: on purpose, or since libvirt and guest are others than the recorded. */
interface Scenario {
  readonly name: string;
  readonly flags: readonly string[];
  /** What was waited for before a recorded call. */
  readonly waits: Waits;
  /** Text of our failure for a call, instead of the recorded one; undefined is success. */
  readonly failures: Readonly<Record<number, { readonly ours: RegExp | undefined; readonly reason: string }>>;
  /** Differences of fields, each after the name of its RPC, or after the number of the call and the name. */
  readonly places: readonly (readonly [RegExp, string])[];
}

const nameOf = ({ method }: Pick<Capture, 'method'>): string => method.slice(method.lastIndexOf('/') + 1);
const isRpc = (name: string): name is CmdRpc => (CMD_RPC_NAMES as readonly string[]).includes(name);

/** The calls of a scenario in their order. */
function capturesOf(scenario: string): readonly Capture[] {
  return [...readFiles('captures')]
    .filter(([path]) => path.startsWith(`${scenario}/`) && /\/\d+-[^/]*\.json$/.test(path))
    .map(([, capture]) => capture as Capture)
    .filter((capture) => capture.channel === 'cmd' && isRpc(nameOf(capture)) && capture.method.includes('.v1.'))
    .sort((a, b) => a.seq - b.seq);
}

const EMPTY: ReadonlySet<unknown> = new Set(['', 0, 0n, false, undefined]);

/** A message as protobuf's JSON shows it; JSON in texts as JSON. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return textOf(Buffer.from(value));
  if (typeof value === 'string') return /^[[{]/.test(value) ? parseJson(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([key, field]) => key !== '_unknownFields' && !EMPTY.has(field));
  return Object.fromEntries(fields.map(([key, field]) => [key, plain(field)]).filter(([, field]) => field !== ''));
}

/** Bytes that are JSON as JSON, others as base64. */
function textOf(bytes: Buffer): unknown {
  return bytes[0] === 0x7b ? parseJson(bytes.toString('utf8')) : bytes.toString('base64');
}

/** JSON in fields, in place of its text. */
function withEmbedded(value: unknown, embedded: Readonly<Record<string, unknown>>, place: string): unknown {
  if (value === '@embedded') return embedded[place];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, withEmbedded(item, embedded, `${place}.${key}`)]),
  );
}

function answerOf(message: Readonly<Record<string, unknown>>): Answer {
  const { success, message: text, response, ...fields } = message;
  const outcome = (response ?? { success, message: text }) as { readonly success?: boolean; readonly message?: string };
  return { failure: outcome.success === true ? undefined : (outcome.message ?? ''), fields };
}

function recordedAnswer({ response, grpcStatus }: Capture): Answer {
  if (response === undefined) return { failure: grpcStatus.message, fields: {} };
  const embedded = response.embedded ?? {};
  const fields = Object.entries(response.protobufJSON);
  return answerOf(Object.fromEntries(fields.map(([key, value]) => [key, withEmbedded(value, embedded, key)])));
}

async function ask(pod: LauncherPod, method: string, request: Uint8Array): Promise<Answer> {
  const answer = await callRaw(join(pod.shareDir, 'sockets/launcher-sock'), method, request);
  if ('code' in answer) return { failure: answer.message, fields: {} };
  const { response } = CMD_RPCS[nameOf({ method }) as CmdRpc];
  return answerOf(plain(response.decode(answer.bytes)) as Record<string, unknown>);
}

/** How an answer differs from the recorded one, but for what is set apart. */
function differences(scenario: Scenario, capture: Capture, ours: Answer): readonly string[] {
  const recorded = recordedAnswer(capture);
  const rpc = nameOf(capture);
  const meant = scenario.failures[capture.seq];
  if (meant !== undefined) {
    const isAsMeant = meant.ours === undefined ? ours.failure === undefined : meant.ours.test(ours.failure ?? '');
    return isAsMeant ? [] : [`failure: ${ours.failure ?? 'none'}, but ${meant.reason}`];
  }
  const [expected, actual] = [recorded.failure, ours.failure].map(withoutVarying);
  const compare = rpc === 'GetDomain' ? valueDifferences : shapeDifferences;
  const found = compare(recorded.fields, ours.fields).filter(
    (difference) =>
      !scenario.places.some(([pattern]) =>
        [`${rpc} ${difference}`, `${capture.seq} ${rpc} ${difference}`].some((text) => pattern.test(text)),
      ),
  );
  return [...(expected === actual ? [] : [`failure: ${expected ?? 'none'} / ${actual ?? 'none'}`]), ...found];
}

/** The agent has connected so many times. */
const agentIsBack = (times: number) => (pod: LauncherPod) =>
  eventually(
    'the agent',
    () => pod.logs.filter(({ msg }) => String(msg).startsWith('GuestAgentLifecycle event state 1 ')).length >= times,
    90_000,
  );

const inGuest = async (pod: LauncherPod, command: string): Promise<void> => {
  const request = { domainName: 'vectors_vm1', Command: '/bin/sh', Args: ['-c', command], timeoutSeconds: 20 };
  const bytes = CMD_RPCS.Exec.request.encode(cmdV1.ExecRequest.fromPartial(request)).finish();
  expect((await ask(pod, '/kubevirt.cmd.v1.Cmd/Exec', bytes)).failure).toBeUndefined();
};

/** Mounts the scratch disk, as the recorded guest does, and waits until all was asked of the agent. */
async function mountAndTell(pod: LauncherPod): Promise<void> {
  await inGuest(pod, '(mount /dev/vda /mnt || (mke2fs /dev/vda && mkdir -p /mnt && mount /dev/vda /mnt)) 2>&1');
  const isTold = async (): Promise<unknown> => {
    const { fields } = await ask(pod, '/kubevirt.cmd.v1.Cmd/GetGuestInfo', new Uint8Array(0));
    return fields['guestInfoResponse'];
  };
  const fsInfo = { disks: [expect.objectContaining({ mountPoint: '/mnt' })] };
  await expect
    .poll(isTold, { timeout: 60_000, interval: 300 })
    .toMatchObject({ fsInfo, hostname: /./, guestAgentVersion: /./, fsFreezeStatus: 'thawed' });
}

/** Reasons why documents of a domain differ. */
const OTHER_LIBVIRT: readonly (readonly [RegExp, string])[] = [
  [/^GetDomain .*Spec\.Devices\.(Watchdogs|Memory\.Target\.Address)\b/, 'libvirt 11 adds them by itself'],
  [/^GetDomain .*Spec\.(OS\.Type\.Machine|CPU\.Features|MaxMemory\.Slots)\b/, 'of another QEMU and libvirt'],
  [/^GetDomain .*Spec\.(Resource\b|Devices\.Channels\.\d+\.Source\.Path)/, 'recorded as root'],
  [/^GetDomain .*Metadata\.KubeVirt\..*Timestamp: "/, 'another time'],
  [/^GetDomain .*Migration\.Completed: /, 'told to handlers before v1.6'],
  [/^GetDomain .*Driver\.IO: "" \/ "native"$/, 'of how the file system has stored the image'],
];

const OTHER_GUEST: Scenario['places'] = [
  [/^GetDomain .*Status\.(OSInfo|Interfaces)\b/, 'of the guest'],
  [/^GetDomain .*(CurrentMemory|Memory\.Target\.Current)\.Value: /, 'the guest takes new memory in its own time'],
  [/^100 GetDomain .*Channels\.0\.Target\.State: "connected" \/ "disconnected"$/, 'the guest may have begun to reboot'],
  [/^GetDomain .*KubeVirt\.Migration: null /, 'the end that a pause stamps may be stamped by now'],
  [/^GetDomain .*KubeVirt\.Migration\.(Mode|StartTimestamp): /, 'after call 91'],
  [/^GetDomain .*Disks\.\d+\.Serial: "hp1" \/ "HP1"$/, 'devices are plugged in with their own letters'],
  [/^GetVMStats . (dirtyRateStats|guestGetLoad|guestNetworkGetRoute)\b/, 'the agent of QEMU 7.2 knows fewer commands'],
  [/^(GetVMStats|GetGuestInfo) . .*\.(os|return)\.version: /, 'the test guest has no such text'],
  [/^GetDomainDirtyRateStats . dirtyRateMbs: /, 'nothing was written in that second'],
];

const SCENARIOS: readonly Scenario[] = [
  {
    name: 'v1.9.0/malformed-requests',
    flags: VM1,
    waits: {},
    failures: { 15: { ours: /^timeoutSeconds must be at least 1$/, reason: 'a time limit of 0 is refused first' } },
    places: OTHER_LIBVIRT,
  },
  {
    name: 'v1.9.0/bad-specification',
    flags: BAD,
    waits: {},
    failures: { 27: { ours: /./, reason: 'the recorded launcher crashed' } },
    places: OTHER_LIBVIRT,
  },
  {
    name: 'v1.9.0/lifecycle',
    flags: [...VM1, '--vm-stats-collector', '--qemu-agent-file-interval', '1s'],
    waits: {
      34: agentIsBack(1),
      35: mountAndTell,
      85: (pod) => pod.waitForLog(/^Domain memory dump failed: /),
      101: agentIsBack(2),
      109: async (pod) => {
        await agentIsBack(3)(pod);
        await mountAndTell(pod);
      },
      115: (pod) => pod.ear.hear('Shutoff', ({ domain: { Status } }) => Status.Reason === 'Shutdown'),
    },
    failures: {
      39: { ours: undefined, reason: 'arguments of a command are escaped' },
      41: { ours: /Failed to execute child process .\/no\/such\/binary/, reason: 'libvirt 11 has another code' },
      44: { ours: /^agent data guest-get-load: /, reason: 'the dirty rate of the first call is measured' },
      91: { ours: undefined, reason: 'a pause is not taken for a migration that ran' },
      120: { ours: undefined, reason: 'the launcher may answer until it ends' },
    },
    places: [...OTHER_LIBVIRT, ...OTHER_GUEST],
  },
];

describe.runIf(hasGuest).each(SCENARIOS)('$name played to a real launcher', { timeout: 240_000 }, (scenario) => {
  const started: { pod?: LauncherPod } = {};
  let pod: LauncherPod;
  beforeAll(async () => {
    pod = await startLauncherPod(scenario.flags);
    started.pod = pod;
    provideKernel(pod);
    provideDisks(pod);
    await pod.ear.open();
    await pod.waitUntilReady();
    await provideNetwork(pod);
  }, 200_000);
  afterAll(() => started.pod?.[Symbol.asyncDispose]());

  const calls = capturesOf(scenario.name).map((capture) => {
    return [`${capture.seq} ${nameOf(capture)} ${capture.label ?? ''}`, capture] as const;
  });
  test.each(calls)('%s', async (_title, capture) => {
    await scenario.waits[capture.seq]?.(pod);
    const ours = await ask(pod, capture.method, Buffer.from(capture.request.base64, 'base64'));
    expect(differences(scenario, capture, ours)).toEqual([]);
  });
});

function provideFile(path: string, make: () => void): void {
  mkdirSync(dirname(path), { recursive: true });
  make();
  chownSync(path, QEMU_UID, QEMU_UID);
}

/** What a handler would have mounted. */
function provideDisks(pod: LauncherPod): void {
  const disks = join(pod.shareDir, 'container-disks');
  copyFileSync(join(disks, 'kernel-boot/initrd'), join(disks, 'kernel-boot/initrd.img'));
  const image = join(disks, 'disk_1.img');
  provideFile(image, () => {
    execFileSync('/usr/bin/qemu-img', ['create', '-f', 'qcow2', image, '64M'], { stdio: 'ignore' });
  });
  const plugged = join(pod.shareDir, 'hotplug-disks/hp1.img');
  provideFile(plugged, () => {
    writeFileSync(plugged, '');
    truncateSync(plugged, 32 << 20);
  });
}

/** What a handler's first network phase leaves for a masquerade interface. */
async function provideNetwork(pod: LauncherPod): Promise<void> {
  const ip = (...args: string[]) =>
    runTool('nsenter', ['-t', String(pod.launcherPid()), '-n', 'ip', ...args], { timeoutMs: 10_000 });
  await ip('link', 'add', 'eth0', 'mtu', '1450', 'type', 'veth', 'peer', 'name', 'out');
  await ip('address', 'add', '10.244.0.10/24', 'dev', 'eth0');
  await ip('link', 'add', 'k6t-eth0', 'mtu', '1450', 'type', 'bridge');
  await ip('address', 'add', '10.0.2.1/24', 'dev', 'k6t-eth0');
  await ip('tuntap', 'add', 'tap0', 'mode', 'tap', 'user', String(QEMU_UID), 'group', String(QEMU_UID));
  await ip('link', 'set', 'tap0', 'mtu', '1450', 'master', 'k6t-eth0', 'up');
  for (const link of ['eth0', 'k6t-eth0']) await ip('link', 'set', link, 'up');
}
