import { accessSync, constants, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LauncherError } from '../errors.ts';

const NAME = 'libvirt-hook-client';
/** Where the client lies: in the image, beside the packed launcher, or in the sources. */
const PLACES = [
  join('/usr/bin', NAME),
  join(import.meta.dirname, NAME),
  join(import.meta.dirname, '../../scripts', NAME),
];

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Makes libvirt call our client at each step of a domain's life. It has to be there before the daemon starts, which looks
 * for hooks only then.
 *
 * @throws {LauncherError} `LibvirtUnavailable` when there is no client, or it cannot be put where libvirt looks for it
 * @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:486
 */
export function installHookClient(libvirtEtcDir: string, places: readonly string[] = PLACES): void {
  const client = places.find(isExecutable);
  if (client === undefined) {
    throw new LauncherError('LibvirtUnavailable', `no executable ${NAME} in ${places.map(dirname).join(', ')}`);
  }
  const hook = join(libvirtEtcDir, 'hooks/qemu');
  try {
    mkdirSync(dirname(hook), { recursive: true });
    rmSync(hook, { force: true });
    symlinkSync(client, hook);
  } catch (caught) {
    throw LauncherError.from(caught, 'LibvirtUnavailable', `failed to install ${hook}: `);
  }
}
