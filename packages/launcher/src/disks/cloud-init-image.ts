import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path/posix';

import type { DomainSpec, Vmi } from '@virtwire/vm-model';

import { cloudInitImage } from '../converter/volume-paths.ts';
import { named, seedMetadata } from './cloud-init-metadata.ts';
import type { CloudInitData } from './cloud-init-source.ts';
import { volumeSize } from './config-disks.ts';
import type { TaggedDevice } from './device-metadata.ts';
import { hasTaggedDevices, taggedDevices } from './device-metadata.ts';
import { diskError, writeEmptyImage } from './files.ts';
import { readHostNodes } from './host-nodes.ts';
import { writeDirectoryIso } from './iso.ts';
import type { DiskDeps } from './ports.ts';

const PRIVATE_MODE = 0o600;

/**
 * Makes the seed image that cloud-init in the guest looks for. Done right before the start, since the addresses of
 * tagged devices are known only once the domain is defined.
 *
 * @throws {LauncherError} `DiskFailed` when the image cannot be made.
 * @source KubeVirt v1.9.0 pkg/cloud-init/cloud-init.go, GenerateLocalData
 */
export async function writeCloudInitImage(
  deps: DiskDeps,
  vmi: Vmi,
  data: CloudInitData,
  defined: DomainSpec,
): Promise<void> {
  const image = cloudInitImage(deps.paths, vmi, data.kind);
  const dir = `${dirname(image)}/data`;
  const files =
    data.kind === 'noCloud'
      ? noCloudFiles(vmi, data)
      : configDriveFiles(vmi, data, taggedDevices(vmi, defined, await readHostNodes(vmi, defined)));
  try {
    await rm(dir, { recursive: true, force: true });
    for (const [name, content] of files) {
      const path = `${dir}/${name}`;
      await mkdir(dirname(path), { recursive: true, mode: 0o755 });
      await writeFile(path, content, { mode: PRIVATE_MODE });
    }
    await writeDirectoryIso(deps, image, data.kind === 'noCloud' ? 'cidata' : 'config-2', dir);
    deps.log.info(`generated nocloud iso file ${image}`);
  } catch (error) {
    throw diskError('generating local cloud-init data failed: ', error);
  } finally {
    // It holds secrets.
    await rm(dir, { recursive: true, force: true });
  }
}

/** Whether the image shows addresses that libvirt gives to devices, so that it must wait for the define. */
export function needsDefinedDomain(vmi: Vmi, data: CloudInitData): boolean {
  return data.kind === 'configDrive' && hasTaggedDevices(vmi);
}

/** An empty image for a migration target: its content comes over the wire. */
export async function writeEmptyCloudInitImage(deps: DiskDeps, vmi: Vmi, data: CloudInitData): Promise<void> {
  await writeEmptyImage(deps, cloudInitImage(deps.paths, vmi, data.kind), volumeSize(vmi, data.volume));
}

/** Makes the directory that the image is written to. */
export async function makeCloudInitDir(deps: Pick<DiskDeps, 'paths'>, vmi: Vmi, data: CloudInitData): Promise<void> {
  await mkdir(dirname(cloudInitImage(deps.paths, vmi, data.kind)), { recursive: true, mode: 0o755 });
}

/** Files of a NoCloud seed by name. */
export function noCloudFiles(vmi: Vmi, data: CloudInitData): ReadonlyMap<string, Buffer> {
  const files = new Map([
    ['meta-data', Buffer.from(JSON.stringify(seedMetadata(vmi, data)))],
    ['user-data', data.userData],
  ]);
  if (data.networkData.length > 0) files.set('network-config', data.networkData);
  return files;
}

/** Files of a ConfigDrive seed by path. */
export function configDriveFiles(
  vmi: Vmi,
  data: CloudInitData,
  devices: readonly TaggedDevice[],
): ReadonlyMap<string, Buffer> {
  const metadata = { ...seedMetadata(vmi, data), ...named('devices', devices.length === 0 ? undefined : devices) };
  const dir = 'openstack/latest';
  const files = new Map([
    [`${dir}/meta_data.json`, Buffer.from(JSON.stringify(metadata))],
    [`${dir}/user_data`, data.userData],
  ]);
  if (data.networkData.length > 0) files.set(`${dir}/network_data.json`, data.networkData);
  return files;
}
