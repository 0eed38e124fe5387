import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openConsole } from './support/console.ts';
import { canLogIn as canLogInAt, createVmiWithCredentials, KEY_FILE, mountSecret } from './support/credentials.ts';
import { hasGuest, provideKernel, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000021';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const vmi = createVmiWithCredentials(UID);
const PATIENT = { timeoutMs: 60_000 };

describe.runIf(hasGuest)('credentials of a real guest (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  const started: { pod?: LauncherPod; client?: CmdClient } = {};

  const mount = (name: string, files: Readonly<Record<string, string>>): void => mountSecret(pod, name, files);
  const canLogIn = (user: string, password: string): Promise<boolean> => canLogInAt(pod, UID, user, password);

  async function inGuest(script: string): Promise<string> {
    const command = { domainName: 'default_vm1', Command: '/bin/sh', Args: ['-c', script], timeoutSeconds: 20 };
    return unwrap(await client.exec(command, PATIENT)).stdOut;
  }

  /** Starts the agent anew, without some commands; the guest's init takes its options from there. */
  async function forbid(commands: string): Promise<void> {
    const options = `-b ${commands}`;
    using console = await openConsole(pod, UID);
    await console.type(`echo "${options}" >/run/qemu-ga.options; killall qemu-ga`, /# $/);
    const isForbidden = async (): Promise<boolean> =>
      (await console.type('tr "\\0" " " </proc/$(pidof qemu-ga)/cmdline', /# $/)).includes(options);
    await expect.poll(isForbidden, { timeout: 60_000, interval: 1_000 }).toBe(true);
  }

  beforeAll(async () => {
    pod = await startLauncherPod(FLAGS);
    started.pod = pod;
    provideKernel(pod);
    mount('keys', { laptop: 'ssh-ed25519 AAAA a@b\n' });
    mount('pass', { guest: 'first secret' });
    await pod.ear.open();
    await pod.waitUntilReady();
    client = await pod.connect();
    started.client = client;
    unwrap(await client.syncVirtualMachine(requestOf(vmi)));
    await pod.ear.hear(
      'credentials in the guest',
      (e) => e.domain.Spec.Metadata.KubeVirt.AccessCredential?.Succeeded === true,
      120_000,
    );
  }, 200_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test('the user has the keys, in a file that is theirs alone, and logs in with the password', async () => {
    expect(await inGuest(`cat ${KEY_FILE}`)).toBe('ssh-ed25519 AAAA a@b');
    expect(await inGuest(`stat -c '%U %a' ${KEY_FILE}`)).toBe('guest 600\n');
    expect(await canLogIn('guest', 'first secret')).toBe(true);
    expect(await canLogIn('guest', 'a guess')).toBe(false);
  });

  test('the guest follows secrets that change', async () => {
    mount('pass', { guest: 'second secret' });
    mount('keys', { laptop: 'ssh-ed25519 BBBB a@b\nssh-rsa CCCC c@d' });
    await expect
      .poll(() => inGuest(`cat ${KEY_FILE}`), { timeout: 60_000, interval: 1_000 })
      .toBe('ssh-ed25519 BBBB a@b\nssh-rsa CCCC c@d');
    await expect.poll(() => canLogIn('guest', 'second secret'), { timeout: 60_000, interval: 1_000 }).toBe(true);
    expect(await canLogIn('guest', 'first secret')).toBe(false);
  });

  test('an agent that lets no keys be set gets the file written, one that lets nothing be done is told of', async () => {
    const heard = pod.ear.domains.length;
    await forbid('guest-ssh-add-authorized-keys');
    mount('keys', { laptop: 'ssh-ed25519 DDDD a@b' });
    await expect
      .poll(() => inGuest(`cat ${KEY_FILE}`).catch(() => ''), { timeout: 90_000, interval: 1_000 })
      .toBe('ssh-ed25519 DDDD a@b');
    await forbid('guest-ssh-add-authorized-keys,guest-set-user-password,guest-exec');
    mount('keys', { laptop: 'ssh-ed25519 EEEE a@b' });
    const failure = await pod.ear.hear(
      'the failure',
      (e) =>
        pod.ear.domains.indexOf(e) >= heard &&
        (e.domain.Spec.Metadata.KubeVirt.AccessCredential?.Message ?? '').startsWith('Error encountered writing ssh'),
      90_000,
    );
    const { Succeeded, Message = '' } = failure.domain.Spec.Metadata.KubeVirt.AccessCredential ?? {};
    expect(Succeeded ?? false).toBe(false);
    expect(Message).toContain('; error from using guest-file-write: unable to detect home directory of user guest: ');
    expect(Message).toContain('Error encountered setting password for user [guest]: ');
    const told = pod.ear.domains.map(({ domain }) => domain.Spec.Metadata.KubeVirt.AccessCredential);
    expect(JSON.stringify(told)).not.toContain('secret');
    expect(pod.output()).not.toMatch(/first secret|second secret/);
  });
});
