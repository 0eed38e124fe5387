import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { Vmi } from '@virtwire/vm-model';
import { goFileError } from '../disks/go-error.ts';
import { listDirectory } from '../disks/iso.ts';
import { LauncherError, textOf } from '../errors.ts';

/** A mounted secret whose content belongs into the guest by way of its agent. */
export type CredentialSource =
  | { readonly kind: 'sshKeys'; readonly dir: string; readonly users: readonly string[] }
  | { readonly kind: 'passwords'; readonly dir: string };

/** What the guest's users should have, as the secrets say now. */
export interface Credentials {
  /** Per user all keys of its secrets, each once. A user whose secrets cannot all be read is left out. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  /** Per user. */
  readonly passwords: ReadonlyMap<string, string>;
  /** Why secrets could not be read. */
  readonly failures: readonly string[];
}

/** Kubernetes allows a secret no more than this. */
const MAX_SECRET_BYTES = 1024 * 1024;

/**
 * The secrets of a VMI that the guest agent propagates, in the order of the spec.
 *
 * @param secretDir directory in which the pod has its secrets mounted.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/access-credentials/access_credentials.go
 */
export function credentialSources(vmi: Vmi, secretDir: string): readonly CredentialSource[] {
  const dirOf = (secret: string): string => join(secretDir, `${secret}-access-cred`);
  return (vmi.spec.accessCredentials ?? []).flatMap<CredentialSource>(({ sshPublicKey, userPassword }) => {
    const sshSecret = sshPublicKey?.source.secret?.secretName;
    const agent = sshPublicKey?.propagationMethod.qemuGuestAgent;
    if (agent !== undefined) {
      return sshSecret === undefined ? [] : [{ kind: 'sshKeys', dir: dirOf(sshSecret), users: agent.users }];
    }
    const secret = userPassword?.source.secret?.secretName;
    if (secret === undefined || userPassword?.propagationMethod.qemuGuestAgent === undefined) return [];
    return [{ kind: 'passwords', dir: dirOf(secret) }];
  });
}

/** Reads all secrets. One that cannot be read does not stop the others. */
export async function readCredentials(sources: readonly CredentialSource[]): Promise<Credentials> {
  const keys = new Map<string, Set<string>>();
  const passwords = new Map<string, string>();
  const unknown = new Set<string>();
  const failures: string[] = [];
  for (const source of sources) {
    try {
      const files = await readSecret(source.dir);
      if (source.kind === 'sshKeys') addKeys(keys, source.users, files);
      else addPasswords(passwords, files);
    } catch (caught) {
      failures.push(textOf(caught));
      // Writing the keys of the other secrets alone would lock somebody out who is still allowed in.
      if (source.kind === 'sshKeys') source.users.forEach((user) => unknown.add(user));
    }
  }
  const known = [...keys].filter(([user]) => !unknown.has(user));
  return { keys: new Map(known.map(([user, set]) => [user, [...set]])), passwords, failures };
}

function addKeys(keys: Map<string, Set<string>>, users: readonly string[], files: ReadonlyMap<string, string>): void {
  const lines = [...files.values()].flatMap((text) => text.split('\n').map((line) => line.trim()));
  for (const user of users) {
    const own = keys.get(user) ?? new Set<string>();
    for (const line of lines) if (line !== '') own.add(line);
    keys.set(user, own);
  }
}

function addPasswords(passwords: Map<string, string>, files: ReadonlyMap<string, string>): void {
  for (const [user, text] of files) {
    const password = text.trim();
    if (password !== '') passwords.set(user, password);
  }
}

/** Files of a mounted secret by name. Names that begin with `..` are how Kubernetes exchanges all files at once. */
async function readSecret(dir: string): Promise<ReadonlyMap<string, string>> {
  let names: readonly string[];
  try {
    names = await listDirectory(dir);
  } catch (caught) {
    const doing = `error occurred while reading the list of secrets files from the base directory ${dir}: `;
    throw LauncherError.from(caught, 'CredentialsFailed', doing);
  }
  const files = new Map<string, string>();
  for (const name of names.filter((entry) => !entry.startsWith('..'))) {
    const path = join(dir, name);
    try {
      const text = await readSmallFile(path);
      if (text !== undefined) files.set(name, text);
    } catch (caught) {
      const doing = `error occurred while reading the access credential secret file [${path}]: `;
      throw LauncherError.from(caught, 'CredentialsFailed', doing);
    }
  }
  return files;
}

async function readSmallFile(path: string): Promise<string | undefined> {
  try {
    const stats = await stat(path);
    if (stats.isDirectory()) return undefined;
    if (!stats.isFile()) throw new Error('not a regular file');
    if (stats.size > MAX_SECRET_BYTES) throw new Error(`larger than ${MAX_SECRET_BYTES} bytes`);
    return await readFile(path, 'utf8');
  } catch (caught) {
    throw goFileError(caught, 'open', path);
  }
}
