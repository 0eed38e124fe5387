import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GuestConsole } from './support/console.ts';
import { openConsole } from './support/console.ts';
import { createVmi, hasGuest, provideKernel, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000023';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const kernelArgs = 'console=ttyS0 quiet virtwire.agent=off';
const vmi = createVmi({ name: 'vm1', uid: UID, withGuest: true, kernelArgs });
const PATIENT = { timeoutMs: 120_000 };
const SCRIPT = readFileSync(join(import.meta.dirname, 'support/hostile-agent.sh'));
/** Characters that the guest's shell takes on one line. */
const LINE = 600;
const MAX_GROWTH_KIB = 96 * 1024;
const MAX_LINES = 60;
const PROMPT = /# $/;
const CONNECTED = /^GuestAgentLifecycle event state 1/;
const DISCONNECTED = /^GuestAgentLifecycle event state 2/;

/** What the agent does, and what support/hostile-agent.sh calls it. */
const ATTACKS: readonly (readonly [string, string])[] = [
  ['is in step, then answers broken JSON', 'broken'],
  ['is in step, then answers with the wrong kinds', 'wrong'],
  ['is in step, then answers with deep JSON', 'deep'],
  ['is in step, then answers with a long list', 'many'],
  ['is in step, then answers with megabytes', 'huge'],
  ['floods with answers that nobody asked for', 'flood'],
  ['sends one line without end', 'line'],
  ['sends noise without end', 'noise'],
  ['comes and goes all the time', 'flap'],
  ['answers nothing at all', 'mute'],
  ['is in step, then answers nothing', 'silent'],
];

describe.runIf(hasGuest)('FM-11.4 an agent that means harm (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  let console: GuestConsole;
  const started: { pod?: LauncherPod; client?: CmdClient; console?: GuestConsole } = {};

  const memoryKiB = (): number => {
    const status = readFileSync(`/proc/${pod.launcherPid()}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  };
  const count = (event: RegExp): number => pod.logs.filter(({ msg }) => event.test(String(msg))).length;
  const after = (event: RegExp, before: number): Promise<void> =>
    expect.poll(() => count(event), { timeout: 60_000 }).toBeGreaterThan(before);

  /** Puts the script into the guest and finds the agent's port there. */
  async function arm(): Promise<void> {
    await console.type('', PROMPT, 120_000);
    const names = '/sys/class/virtio-ports/*/name';
    await console.type(`P=/dev/$(basename $(dirname $(grep -l guest_agent ${names})))`, PROMPT);
    const text = SCRIPT.toString('base64');
    for (let at = 0; at < text.length; at += LINE) {
      await console.type(`echo ${text.slice(at, at + LINE)} >>/run/hostile.b64`, PROMPT);
    }
    await console.type('base64 -d /run/hostile.b64 >/run/hostile.sh', PROMPT);
  }

  beforeAll(async () => {
    pod = await startLauncherPod(FLAGS);
    started.pod = pod;
    provideKernel(pod);
    await pod.ear.open();
    await pod.waitUntilReady();
    client = await pod.connect();
    started.client = client;
    unwrap(await client.syncVirtualMachine(requestOf(vmi), PATIENT));
    console = await openConsole(pod, UID);
    started.console = console;
    await arm();
  }, 200_000);

  afterAll(async () => {
    started.console?.[Symbol.dispose]();
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test.each(ATTACKS)('%s: only questions to the guest suffer', async (_what, how) => {
    const before = { memory: memoryKiB(), lines: pod.logs.length, in: count(CONNECTED), out: count(DISCONNECTED) };
    await console.type(`sh /run/hostile.sh $P ${how} & H=$!; echo`, PROMPT);
    await after(CONNECTED, before.in);
    const exec = client.exec({ domainName: 'default_vm1', Command: 'id', Args: [], timeoutSeconds: 5 }, PATIENT);
    const answered = exec.then(() => true);
    const soon = (): Promise<boolean> => new Promise((resolve) => setTimeout(resolve, 500, false));
    try {
      do {
        unwrap(await client.syncVirtualMachine(requestOf(vmi)));
        unwrap(await client.getDomain());
        unwrap(await client.getDomainStats());
        unwrap(await client.getGuestInfo());
      } while (!(await Promise.race([answered, soon()])));
      expect((await exec).ok).toBe(false);
      expect(memoryKiB() - before.memory).toBeLessThan(MAX_GROWTH_KIB);
      const lines = pod.logs.slice(before.lines).filter(({ msg }) => msg !== 'Synced vmi');
      expect(lines.length).toBeLessThan(MAX_LINES);
    } finally {
      await console.type('kill -9 -$H; killall -9 cat tr yes head; echo', PROMPT);
      await after(DISCONNECTED, before.out);
    }
  });

  test('an honest agent that comes after them is heard, also one that lacks a command', async () => {
    const heard = pod.ear.domains.length;
    // The guest forbids one command; the facts that libvirt asks for with it are heard all the same.
    await console.type('qemu-ga -m virtio-serial -p $P -t /run -b guest-get-timezone >/dev/null 2>&1 &', PROMPT);
    await pod.ear.hear(
      'the guest',
      (e) => pod.ear.domains.indexOf(e) >= heard && e.domain.Status.OSInfo.Id === 'virtwire',
      120_000,
    );
    const shown = unwrap(await client.getGuestInfo());
    expect(JSON.parse(shown.guestInfoResponse)).toMatchObject({ os: { id: 'virtwire' } });
  });
});
