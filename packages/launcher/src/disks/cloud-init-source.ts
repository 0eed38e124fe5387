import { readFile, stat } from 'node:fs/promises';

import type { CloudInitSource, Vmi } from '@virtwire/vm-model';

import { nonEmpty } from '../converter/non-empty.ts';
import { LauncherError } from '../errors.ts';
import { decodeBase64 } from './base64.ts';
import { goFileError } from './go-error.ts';
import { listDirectory } from './iso.ts';
import type { DiskDeps } from './ports.ts';

const USER_DATA_FILES = ['userdata', 'userData'];
const NETWORK_DATA_FILES = ['networkdata', 'networkData'];

/** How cloud-init finds its seed. */
export type CloudInitKind = 'noCloud' | 'configDrive';

/** Seed data of a VMI, as far as it is known before the domain is defined. */
export interface CloudInitData {
  readonly kind: CloudInitKind;
  readonly volume: string;
  /** Any bytes: cloud-init takes packed data too. */
  readonly userData: Buffer;
  readonly networkData: Buffer;
  /** SSH keys in order. */
  readonly publicKeys: readonly string[];
  /** What a sidecar made of the metadata; `minimal` is the least that cloud-init needs. Default: what the VMI says. */
  readonly metadata?: SeedMetadata | 'minimal';
}

/** Metadata of a seed by the names that cloud-init knows. */
export type SeedMetadata = Readonly<Record<string, unknown>>;

/**
 * Reads the seed of the first cloud-init volume: inline data, or the secrets that are mounted for it.
 *
 * @returns undefined when the VMI has no cloud-init volume.
 * @throws {LauncherError} `DiskFailed` when there is no data, or a secret is missing.
 * @source KubeVirt v1.9.0 pkg/cloud-init/cloud-init.go, ReadCloudInitVolumeDataSource
 */
export async function readCloudInit(deps: Pick<DiskDeps, 'paths'>, vmi: Vmi): Promise<CloudInitData | undefined> {
  for (const { name, cloudInitNoCloud, cloudInitConfigDrive } of vmi.spec.volumes ?? []) {
    const source = cloudInitNoCloud ?? cloudInitConfigDrive;
    if (source === undefined) continue;
    const kind = cloudInitNoCloud === undefined ? 'configDrive' : 'noCloud';
    const secretDir = `${deps.paths.privateDir}/secret`;
    const publicKeys = await readPublicKeys(vmi, secretDir, kind);
    const secrets = await readSecrets(source, `${secretDir}/${name}`, name);
    const userData = secrets.userData ?? inline(source.userData, source.userDataBase64);
    const networkData = secrets.networkData ?? inline(source.networkData, source.networkDataBase64);
    if (userData.length === 0 && networkData.length === 0) {
      const message =
        'userDataBase64, userData, networkDataBase64 or networkData is required for a cloud-init data source';
      throw new LauncherError('DiskFailed', message);
    }
    return { kind, volume: name, userData, networkData, publicKeys };
  }
  return undefined;
}

function inline(text: string | undefined, base64: string | undefined): Buffer {
  return text ? Buffer.from(text) : decodeBase64(base64 ?? '');
}

/** What the secrets that a source refers to hold; undefined where they hold nothing or are not there. */
async function readSecrets(
  source: CloudInitSource,
  dir: string,
  volume: string,
): Promise<{ readonly userData: Buffer | undefined; readonly networkData: Buffer | undefined }> {
  const { secretRef, networkDataSecretRef } = source;
  const userData = secretRef === undefined ? undefined : await readFirst(dir, USER_DATA_FILES);
  const networkData = networkDataSecretRef === undefined ? undefined : await readFirst(dir, NETWORK_DATA_FILES);
  const hasBoth = secretRef !== undefined && networkDataSecretRef !== undefined;
  if (hasBoth && userData === undefined && networkData === undefined) {
    throw new LauncherError('DiskFailed', `no cloud-init data-source found at volume: ${volume}`);
  }
  return { userData: whereAny(userData), networkData: whereAny(networkData) };
}

const whereAny = (bytes: Buffer | undefined): Buffer | undefined => (bytes?.length === 0 ? undefined : bytes);

async function readFirst(dir: string, names: readonly string[]): Promise<Buffer | undefined> {
  for (const name of names) {
    try {
      return await readFile(`${dir}/${name}`);
    } catch {
      // The other spelling may be there.
    }
  }
  return undefined;
}

async function readPublicKeys(vmi: Vmi, secretDir: string, kind: CloudInitKind): Promise<readonly string[]> {
  const keys: string[] = [];
  for (const { sshPublicKey } of vmi.spec.accessCredentials ?? []) {
    const secret = nonEmpty(sshPublicKey?.source.secret?.secretName);
    if (secret === undefined || sshPublicKey?.propagationMethod[kind] === undefined) continue;
    const dir = `${secretDir}/${secret}-access-cred`;
    for (const name of await listDirectory(dir)) {
      const path = `${dir}/${name}`;
      if (name.startsWith('..') || !(await stat(path)).isFile()) continue;
      const key = await readKey(path);
      if (key !== '') keys.push(key);
    }
  }
  return keys;
}

async function readKey(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw goFileError(error, 'open', path);
  }
}
