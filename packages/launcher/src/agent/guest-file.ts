import { parseJson } from '@virtwire/vm-model';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { LauncherError } from '../errors.ts';

/** What access to the guest's files needs: the connection for calls that wait for the guest. */
export type GuestFilePort = Pick<LibvirtPort, 'agentCommand'>;

/** Most that is read of a guest's file; what is longer counts as different from everything. */
const MAX_GUEST_FILE_BYTES = 1024 * 1024;
/** How the agent passes the guest's "no such file" on. */
const NO_SUCH_FILE = 'No such file or directory';

async function call(
  libvirt: GuestFilePort,
  domain: DomainRef,
  execute: string,
  args: Readonly<Record<string, string | number>>,
): Promise<unknown> {
  const reply = parseJson(await libvirt.agentCommand(domain, JSON.stringify({ execute, arguments: args })));
  if (typeof reply === 'object' && reply !== null && 'return' in reply) return reply.return;
  throw new LauncherError('GuestCommandFailed', `no answer of the guest agent to ${execute}`);
}

async function withOpenFile<T>(
  libvirt: GuestFilePort,
  domain: DomainRef,
  path: string,
  mode: 'r' | 'w',
  use: (handle: number) => Promise<T>,
): Promise<T> {
  const handle = await call(libvirt, domain, 'guest-file-open', { path, mode });
  if (typeof handle !== 'number') {
    throw new LauncherError('GuestCommandFailed', `the guest agent opened ${path} without a handle`);
  }
  try {
    return await use(handle);
  } finally {
    // A file that was written is on its way to the disk only now, so a failure counts.
    await call(libvirt, domain, 'guest-file-close', { handle });
  }
}

/**
 * Reads a file of the guest.
 *
 * @returns its content, at most `MAX_GUEST_FILE_BYTES` of it; undefined when there is no such file.
 * @throws {LauncherError} `GuestCommandFailed`, or the agent's failure as it is.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/access-credentials/access_credentials.go
 */
export async function readGuestFile(
  libvirt: GuestFilePort,
  domain: DomainRef,
  path: string,
): Promise<string | undefined> {
  try {
    return await withOpenFile(libvirt, domain, path, 'r', async (handle) => {
      const read = await call(libvirt, domain, 'guest-file-read', { handle, count: MAX_GUEST_FILE_BYTES });
      const text = (read as { readonly 'buf-b64'?: unknown } | null)?.['buf-b64'];
      return typeof text === 'string' ? Buffer.from(text, 'base64').toString('utf8') : '';
    });
  } catch (caught) {
    if (caught instanceof Error && caught.message.includes(NO_SUCH_FILE)) return undefined;
    throw caught;
  }
}

/**
 * Replaces the content of a file of the guest; makes it when it is not there.
 *
 * @throws {LauncherError} `GuestCommandFailed`, or the agent's failure as it is.
 */
export async function writeGuestFile(
  libvirt: GuestFilePort,
  domain: DomainRef,
  path: string,
  content: string,
): Promise<void> {
  const bytes = Buffer.from(content);
  await withOpenFile(libvirt, domain, path, 'w', async (handle) => {
    for (let written = 0; written < bytes.length;) {
      const rest = bytes.subarray(written).toString('base64');
      const wrote = await call(libvirt, domain, 'guest-file-write', { handle, 'buf-b64': rest });
      const count = Number((wrote as { readonly count?: unknown } | null)?.count ?? 0);
      if (!(count > 0)) throw new LauncherError('GuestCommandFailed', `the guest agent wrote nothing to ${path}`);
      written += count;
    }
  });
}
