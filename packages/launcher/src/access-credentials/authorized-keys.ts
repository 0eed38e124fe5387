import { dirname } from 'node:path/posix';
import type { Logger } from '@virtwire/telemetry';
import { execInGuest } from '../agent/exec.ts';
import type { GuestExecDeps } from '../agent/exec.ts';
import { readGuestFile, writeGuestFile } from '../agent/guest-file.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import { LauncherError, textOf } from '../errors.ts';

/** What setting SSH keys in the guest needs. */
export interface AuthorizedKeysDeps extends GuestExecDeps {
  readonly libvirt: GuestExecDeps['libvirt'] & Pick<LibvirtPort, 'setAuthorizedSshKeys'>;
  readonly log: Logger;
}

const COMMAND_TIMEOUT_SECONDS = 10;
const PASSWD_FIELDS = 6;
const KEY_FILE = '.ssh/authorized_keys';

interface GuestUser {
  readonly home: string;
  /** `uid:gid` */
  readonly owner: string;
}

/**
 * Gives a user of the guest exactly these SSH keys: by the agent's own command, or, where it lacks that or refuses it, by
 * writing the user's file through the agent.
 *
 * @throws {LauncherError} `CredentialsFailed` with both failures.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/access-credentials/access_credentials.go
 */
export async function setAuthorizedKeys(
  deps: AuthorizedKeysDeps,
  domainName: string,
  user: string,
  keys: readonly string[],
): Promise<void> {
  try {
    const domain = await deps.libvirt.lookupDomainByName(domainName);
    await deps.libvirt.setAuthorizedSshKeys(domain, user, keys);
  } catch (refused) {
    try {
      await writeKeyFile(deps, domainName, user, keys.join('\n'));
    } catch (failed) {
      const texts = [
        `error from guest-ssh-add-authorized-keys: ${textOf(refused)}`,
        `error from using guest-file-write: ${textOf(failed)}`,
      ];
      const text = `failed to set SSH keys: ${texts.join('; ')}`;
      throw new LauncherError('CredentialsFailed', text, { cause: failed });
    }
  }
}

async function run(deps: AuthorizedKeysDeps, domainName: string, path: string, ...args: string[]): Promise<string> {
  const command = { path, args, timeoutSeconds: COMMAND_TIMEOUT_SECONDS };
  const { exitCode, output } = await execInGuest(deps, domainName, command);
  if (exitCode === 0) return output;
  const what = `command [${path}] with args [${args.join(' ')}]`;
  throw new LauncherError('GuestCommandFailed', `Non-zero exit code [${exitCode}] for guest ${what}: ${output}`);
}

async function findUser(deps: AuthorizedKeysDeps, domainName: string, user: string): Promise<GuestUser> {
  const unable = `unable to detect home directory of user ${user}`;
  let entry: string;
  try {
    entry = await run(deps, domainName, 'getent', 'passwd', user);
  } catch (caught) {
    throw LauncherError.from(caught, 'GuestCommandFailed', `${unable}: `);
  }
  const fields = entry.trim().split(':');
  const [, , uid, gid, , home] = fields;
  if (fields.length < PASSWD_FIELDS || home === undefined) throw new LauncherError('GuestCommandFailed', unable);
  deps.log.debug(`Detected home directory ${home} for user ${user}`);
  return { home, owner: `${uid ?? ''}:${gid ?? ''}` };
}

async function writeKeyFile(deps: AuthorizedKeysDeps, domainName: string, user: string, wanted: string): Promise<void> {
  const { home, owner } = await findUser(deps, domainName, user);
  const path = `${home}/${KEY_FILE}`;
  const domain = await deps.libvirt.lookupDomainByName(domainName);
  const present = await readGuestFile(deps.libvirt, domain, path);
  if (present === wanted) return;
  const own = async (target: string, mode: string): Promise<void> => {
    await run(deps, domainName, 'chown', owner, target);
    await run(deps, domainName, 'chmod', mode, target);
  };
  await run(deps, domainName, 'mkdir', '-p', dirname(path));
  await own(dirname(path), '700');
  // Before the write where there is something to protect, after it where there was nothing.
  if (present !== undefined) await own(path, '600');
  await writeGuestFile(deps.libvirt, domain, path, wanted);
  if (present === undefined) await own(path, '600');
}
