import { chmodSync, chownSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { LauncherError } from '../errors.ts';
import type { LauncherFlags } from './flags.ts';
import { launcherPaths, QEMU_UID } from './paths.ts';

interface Wanted {
  readonly path: string;
  readonly mode: number;
  /** chown to the user qemu. */
  readonly own: boolean;
  /** Enforce the mode on a directory that exists already. */
  readonly enforce?: boolean;
}

/** The directories of a launcher in the order in which they are made. `@source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:159` */
export function wantedDirectories(flags: LauncherFlags): readonly Wanted[] {
  const priv = (name: string): Wanted => ({ path: join(flags.privateDir, name), mode: 0o750, own: true });
  return [
    { path: join(flags.privateDir, flags.uid), mode: 0o755, own: true },
    { path: join(flags.ephemeralDiskDir, 'cloud-init-data'), mode: 0o755, own: false },
    { path: join(flags.ephemeralDiskDir, 'ignition-data'), mode: 0o755, own: false },
    { path: flags.containerDiskDir, mode: 0o750, own: false },
    { path: flags.hotplugDiskDir, mode: 0o755, own: false },
    { ...priv('vm-disks'), enforce: true },
    priv('config-map-disks'),
    priv('sysprep-disks'),
    priv('secret-disks'),
    priv('downwardapi-disks'),
    priv('service-account-disk'),
    priv('downwardmetrics-channel'),
    { path: join(flags.ephemeralDiskDir, 'disk-data'), mode: 0o755, own: false },
    { path: join(flags.kubevirtShareDir, 'sockets'), mode: 0o755, own: false },
  ];
}

function ensureOwned(path: string): void {
  const { uid, gid } = statSync(path);
  if (uid !== QEMU_UID || gid !== QEMU_UID) chownSync(path, QEMU_UID, QEMU_UID);
}

function ensureDirectory(dir: Wanted): void {
  mkdirSync(dir.path, { recursive: true, mode: dir.mode });
  if (dir.enforce === true) chmodSync(dir.path, dir.mode);
  if (dir.own) ensureOwned(dir.path);
}

/**
 * Creates and owns the launcher's directories, and in root mode the serial log that QEMU may not create itself.
 * Idempotent. Sets the process umask to 0 while it works: other containers of the pod share these directories.
 *
 * @throws {LauncherError} `DirectoryFailed` with the path
 */
export function ensureDirectories(flags: LauncherFlags): void {
  const before = process.umask(0);
  let at = '';
  try {
    for (const dir of wantedDirectories(flags)) {
      at = dir.path;
      ensureDirectory(dir);
    }
    if (!flags.runAsNonroot) {
      at = launcherPaths(flags).serialLog;
      closeSync(openSync(at, 'a', 0o600));
      ensureOwned(at);
    }
  } catch (caught) {
    throw LauncherError.from(caught, 'DirectoryFailed', `failed to prepare ${at}: `);
  } finally {
    process.umask(before);
  }
}
