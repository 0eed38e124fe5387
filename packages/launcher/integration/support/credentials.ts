import { chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import { openConsole } from './console.ts';
import { createVmi } from './guest.ts';
import type { LauncherPod } from './sandbox.ts';

const secret = (secretName: string) => ({ source: { secret: { secretName } } });

/** Where the keys of `guest` are in the guest. */
export const KEY_FILE = '/home/guest/.ssh/authorized_keys';

/** A VMI whose guest gets SSH keys from the secret `keys` and passwords from the secret `pass`. */
export function createVmiWithCredentials(uid: string): Vmi {
  const bare = createVmi({ name: 'vm1', uid, withGuest: true });
  return {
    ...bare,
    spec: {
      ...bare.spec,
      accessCredentials: [
        { sshPublicKey: { ...secret('keys'), propagationMethod: { qemuGuestAgent: { users: ['guest'] } } } },
        { userPassword: { ...secret('pass'), propagationMethod: { qemuGuestAgent: {} } } },
      ],
    },
  };
}

/** Puts the files of a secret into a pod, or exchanges them, as kubelet does. */
export function mountSecret(pod: LauncherPod, name: string, files: Readonly<Record<string, string>>): void {
  const dir = join(pod.root, 'kubevirt-private/secret', `${name}-access-cred`);
  mkdirSync(dir, { recursive: true });
  const version = mkdtempSync(join(dir, '..version-'));
  chownSync(version, 107, 107);
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(version, file), content, { mode: 0o640 });
    chownSync(join(version, file), 0, 107);
    if (!existsSync(join(dir, '..data'))) symlinkSync(join('..data', file), join(dir, file));
  }
  symlinkSync(basename(version), join(dir, '..data_tmp'));
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'));
}

/** Tries to log in as a user of the guest, on its console. */
export async function canLogIn(pod: LauncherPod, uid: string, user: string, password: string): Promise<boolean> {
  using console = await openConsole(pod, uid);
  await console.type('', /# $/);
  await console.type(`login ${user}`, /Password: $/);
  const answer = await console.type(password, /\$ $|Login incorrect/);
  if (answer.includes('incorrect')) {
    await console.type('\u0003', /# $/);
    return false;
  }
  await console.type('id -un', new RegExp(`${user}\r?\n`));
  await console.type('exit', /# $/);
  return true;
}
