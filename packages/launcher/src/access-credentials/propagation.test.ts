import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createMetadataCache } from '../metadata/cache.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { AgentStandIn } from '../testing/agent-stand-in.ts';
import { createAgentStandIn } from '../testing/agent-stand-in.ts';
import type { FakeClock } from '../testing/fake-clock.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import type { CredentialPropagation } from './propagation.ts';
import { createCredentialPropagation } from './propagation.ts';
import { credentialSources, readCredentials } from './secrets.ts';

const lines: Record<string, unknown>[] = [];
const log = createLogger('virt-launcher', {
  destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
});
const secret = (secretName: string) => ({ source: { secret: { secretName } } });
const agentKeys = (name: string, ...users: string[]) => ({
  sshPublicKey: { ...secret(name), propagationMethod: { qemuGuestAgent: { users } } },
});
const passwords = (name: string) => ({
  userPassword: { ...secret(name), propagationMethod: { qemuGuestAgent: {} } },
});

function vmiWith(...accessCredentials: object[]): Vmi {
  const metadata = { name: 'vm', namespace: 'ns', uid: '1' };
  return parseVmiJson(JSON.stringify({ metadata, spec: { domain: { devices: {} }, accessCredentials } }));
}

let root: string;
let clock: FakeClock;
let guest: AgentStandIn;
let metadata: MetadataCache;
let propagation: CredentialPropagation;
let versions = 0;

/** Puts a secret where kubelet would, all files exchanged at once. */
function mount(name: string, files: Readonly<Record<string, string>>): void {
  const dir = join(root, `${name}-access-cred`);
  const version = `..version-${++versions}`;
  mkdirSync(join(dir, version), { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(dir, version, file), content);
    rmSync(join(dir, file), { force: true });
    symlinkSync(join('..data', file), join(dir, file));
  }
  symlinkSync(version, join(dir, '..data_tmp'));
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'));
}

/** Moves the clock on and waits for the run that is due then; it reads files, which takes real time. */
async function advanceTo(ms: number, isDone: () => boolean): Promise<void> {
  await clock.advance(ms);
  await expect
    .poll(async () => {
      await clock.settle();
      return isDone();
    })
    .toBe(true);
}

const isTold = (): boolean => metadata.accessCredential.load() !== undefined;

/** Lets the kernel tell of file changes, which no fake clock can hurry. */
async function settleFiles(isDone: () => boolean): Promise<void> {
  await expect
    .poll(async () => {
      await clock.advance(15_000);
      return isDone();
    })
    .toBe(true);
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-credentials-'));
  clock = createFakeClock(0);
  guest = createAgentStandIn();
  metadata = createMetadataCache();
  lines.length = 0;
  propagation = createCredentialPropagation({ libvirt: guest.libvirt, metadata, clock, secretDir: root });
});

afterEach(() => {
  propagation.stop();
  rmSync(root, { recursive: true, force: true });
});

describe('credentials by the guest agent', () => {
  test('keys and passwords reach the guest once, and again every five minutes', async () => {
    mount('keys', { one: 'ssh-ed25519 AAA a\n\n  ssh-ed25519 BBB b \n', two: 'ssh-ed25519 CCC c' });
    mount('more', { key: 'ssh-ed25519 AAA a\nssh-ed25519 DDD d' });
    mount('pass', { fedora: ' secret \n', nobody: ' \n' });
    propagation.start(vmiWith(agentKeys('keys', 'root', 'fedora'), agentKeys('more', 'root'), passwords('pass')), log);
    await clock.advance(14_999);
    expect(guest.asked).toEqual([]);
    await advanceTo(1, isTold);
    const [a, b, c, d] = ['AAA a', 'BBB b', 'CCC c', 'DDD d'].map((key) => `ssh-ed25519 ${key}`);
    expect(guest.keys).toEqual(
      new Map([
        ['root', [a, b, c, d]],
        ['fedora', [a, b, c]],
      ]),
    );
    expect(guest.passwords).toEqual(new Map([['fedora', 'secret']]));
    expect(metadata.accessCredential.load()).toEqual({ Succeeded: true, Message: '' });
    expect(metadata.takeNotification()).toBe(true);
    const { length } = guest.asked;
    await clock.advance(284_000);
    expect(guest.asked).toHaveLength(length);
    await advanceTo(1_000, () => guest.asked.length === 2 * length);
    await clock.settle();
    expect(metadata.takeNotification()).toBe(false);
  });

  test('no secret is ever logged', async () => {
    mount('pass', { fedora: 'hunter2' });
    guest.refusal = 'disabled';
    propagation.start(vmiWith(passwords('pass')), log);
    await advanceTo(15_000, isTold);
    expect(JSON.stringify([lines, metadata.snapshot()])).not.toContain('hunter2');
    expect(metadata.accessCredential.load()?.Message).toMatch(
      /^Error encountered setting password for user \[fedora\]/,
    );
  });

  test('a rotated secret reaches the guest', async () => {
    mount('pass', { fedora: 'old' });
    propagation.start(vmiWith(passwords('pass')), log);
    await advanceTo(15_000, () => guest.passwords.get('fedora') === 'old');
    mount('pass', { fedora: 'new' });
    await settleFiles(() => guest.passwords.get('fedora') === 'new');
    await advanceTo(0, () => metadata.accessCredential.load()?.Succeeded === true);
  });

  test('FM-11.5 an agent that is away is asked again, and told of once', async () => {
    mount('pass', { fedora: 'x' });
    guest.isOnline = false;
    propagation.start(vmiWith(passwords('pass')), log);
    await clock.advance(15_000);
    expect(metadata.accessCredential.load()).toEqual({ Succeeded: false, Message: 'Guest agent is offline' });
    expect(metadata.takeNotification()).toBe(true);
    await clock.advance(60_000);
    expect(guest.asked).toHaveLength(5);
    expect(metadata.takeNotification()).toBe(false);
    expect(lines).toHaveLength(1);
    guest.isOnline = true;
    await advanceTo(15_000, () => metadata.accessCredential.load()?.Succeeded === true);
    expect(guest.passwords.get('fedora')).toBe('x');
  });

  test('a secret that is missing at the start fails it, in the words of the model', () => {
    expect(() => propagation.start(vmiWith(passwords('none')), log)).toThrow(
      /^Starting qemu agent access credential propagation failed: no such file or directory$/,
    );
  });

  test('a secret that goes away takes no keys from the guest and does not stop the others', async () => {
    mount('keys', { key: 'ssh-rsa A' });
    mount('more', { key: 'ssh-rsa B' });
    mount('pass', { root: 'x' });
    propagation.start(vmiWith(agentKeys('keys', 'root'), agentKeys('more', 'root'), passwords('pass')), log);
    const dir = join(root, 'more-access-cred');
    rmSync(dir, { recursive: true });
    await settleFiles(() => guest.passwords.has('root') && isTold());
    expect(guest.keys.has('root')).toBe(false);
    const reading = 'error occurred while reading the list of secrets files from the base directory';
    const Message = `${reading} ${dir}: open ${dir}: no such file or directory`;
    expect(metadata.accessCredential.load()).toEqual({ Succeeded: false, Message });
  });

  test('nothing happens without such credentials, after a stop, or at a second start', async () => {
    const noCloud = { sshPublicKey: { ...secret('s'), propagationMethod: { noCloud: {} } } };
    propagation.start(vmiWith(noCloud), log);
    mount('pass', { fedora: 'x' });
    propagation.start(vmiWith(passwords('pass')), log);
    propagation.start(vmiWith(passwords('pass')), log);
    await advanceTo(15_000, isTold);
    expect(guest.asked).toEqual(['guest-ping', 'password of fedora']);
    propagation.stop();
    await clock.advance(600_000);
    expect(guest.asked).toHaveLength(2);
  });
});

describe('SSH keys without the agent command for them', () => {
  const keyFile = '/home/fedora/.ssh/authorized_keys';
  const commands = () => guest.asked.filter((asked) => asked.startsWith('guest-exec ')).map((asked) => asked.slice(11));

  beforeEach(() => {
    mount('keys', { key: 'ssh-rsa A\nssh-rsa B\n' });
    guest.refusal = 'The command guest-ssh-add-authorized-keys has not been found';
  });

  test('the file is made, and owned afterwards', async () => {
    propagation.start(vmiWith(agentKeys('keys', 'fedora')), log);
    await advanceTo(15_000, isTold);
    expect(guest.files).toEqual(new Map([[keyFile, 'ssh-rsa A\nssh-rsa B']]));
    expect(commands()).toEqual([
      'getent passwd fedora',
      'mkdir -p /home/fedora/.ssh',
      'chown 1000:1000 /home/fedora/.ssh',
      'chmod 700 /home/fedora/.ssh',
      `chown 1000:1000 ${keyFile}`,
      `chmod 600 ${keyFile}`,
    ]);
    expect(guest.asked.filter((asked) => asked.startsWith('guest-file-write')).length).toBeGreaterThan(1);
    expect(metadata.accessCredential.load()).toEqual({ Succeeded: true, Message: '' });
    expect(guest.asked.filter((asked) => asked === 'guest-file-close')).toHaveLength(1);
  });

  test('a file that is as it should be is not touched, another one is replaced', async () => {
    guest.files.set(keyFile, 'ssh-rsa A\nssh-rsa B');
    propagation.start(vmiWith(agentKeys('keys', 'fedora')), log);
    await advanceTo(15_000, isTold);
    expect(commands()).toEqual(['getent passwd fedora']);
    guest.files.set(keyFile, 'ssh-rsa X');
    await advanceTo(300_000, () => guest.files.get(keyFile) === 'ssh-rsa A\nssh-rsa B');
    expect(commands().slice(-2)).toEqual([`chown 1000:1000 ${keyFile}`, `chmod 600 ${keyFile}`]);
  });

  test('when the file cannot be written either, both failures are told', async () => {
    propagation.start(vmiWith(agentKeys('keys', 'ghost')), log);
    await advanceTo(15_000, isTold);
    const { Succeeded, Message = '' } = metadata.accessCredential.load() ?? {};
    expect(Succeeded).toBe(false);
    const [by, start] = [
      guest.refusal ?? '',
      'Error encountered writing ssh pub key access credentials for user [ghost]',
    ];
    expect(Message.startsWith(`${start}: failed to set SSH keys: error from guest-ssh-add-authorized-keys: `)).toBe(
      true,
    );
    expect(Message).toContain(by);
    expect(Message).toContain('; error from using guest-file-write: unable to detect home directory of user ghost: ');
    expect(Message).toContain('Non-zero exit code [2] for guest command [getent]');
  });
});

test('what an agent says is told no longer than a condition can be', async () => {
  mount('pass', { fedora: 'x' });
  guest.refusal = 'no'.repeat(100_000);
  propagation.start(vmiWith(passwords('pass')), log);
  await advanceTo(15_000, isTold);
  expect(metadata.accessCredential.load()?.Message).toHaveLength(2_048);
});

test('a secret that is too large or no file is refused by name', async () => {
  mount('big', { key: 'x'.repeat(1024 * 1024 + 1) });
  const { failures, keys } = await readCredentials(credentialSources(vmiWith(agentKeys('big', 'root')), root));
  expect(failures).toHaveLength(1);
  expect(failures[0]).toMatch(
    /^error occurred while reading the access credential secret file \[.*\/key\]: .*larger than/,
  );
  expect(keys.size).toBe(0);
});
