import { describe, expect, test } from 'vitest';
import { canLogIn, createVmiWithCredentials, KEY_FILE, mountSecret } from './support/credentials.ts';
import { hasGuest } from './support/guest.ts';
import { startScene } from './support/migration-scene.ts';
import { hearEnd, migrating, migrationOf, startMigration } from './support/migration.ts';
import type { LauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000021';
const vmi = createVmiWithCredentials(UID);
const POLL = { timeout: 90_000, interval: 1_000 };

function mountBoth(pod: LauncherPod, key: string, password: string): void {
  mountSecret(pod, 'keys', { laptop: key });
  mountSecret(pod, 'pass', { guest: password });
}

describe.runIf(hasGuest)('credentials of a guest that moved (scripts/guest/build.sh)', { timeout: 600_000 }, () => {
  test('the target brings it the secrets that change after the migration', async () => {
    const provide = (pod: LauncherPod): void => mountBoth(pod, 'ssh-ed25519 AAAA a@b', 'first secret');
    await using scene = await startScene(vmi, { provide });
    const { source, target } = scene;
    const isBrought = ({ ear }: LauncherPod): boolean =>
      ear.domains.at(-1)?.domain.Spec.Metadata.KubeVirt.AccessCredential?.Succeeded === true;
    await expect.poll(() => isBrought(source.pod), POLL).toBe(true);
    expect(await canLogIn(source.pod, UID, 'guest', 'first secret')).toBe(true);

    await startMigration(source, target, migrating(vmi, 'mig-1'));
    expect(migrationOf(await hearEnd(source, 'mig-1'))?.Failed ?? false).toBe(false);
    await hearEnd(target, 'mig-1');
    expect(await canLogIn(target.pod, UID, 'guest', 'first secret')).toBe(true);

    mountBoth(target.pod, 'ssh-ed25519 BBBB a@b', 'second secret');
    await expect.poll(() => target.run(`cat ${KEY_FILE}`), POLL).toBe('ssh-ed25519 BBBB a@b');
    await expect.poll(() => canLogIn(target.pod, UID, 'guest', 'second secret'), POLL).toBe(true);
    expect(await canLogIn(target.pod, UID, 'guest', 'first secret')).toBe(false);
    await expect.poll(() => isBrought(target.pod), POLL).toBe(true);
    expect(target.pod.output()).not.toMatch(/first secret|second secret/);
  });
});
