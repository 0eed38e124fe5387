import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

import type { Vmi, VmiClaimRequest } from '@virtwire/vm-model';

import { textOf } from '../errors.ts';
import type { ClaimedDevice, DeviceClaims } from './circumstances.ts';
import { nonEmpty } from './non-empty.ts';

/** Where the kubelet shows a pod the devices that its resource claims got. */
const DEVICE_ATTRIBUTES_DIR = '/var/run/kubernetes.io/dra-device-attributes';

const SUFFIX = '-metadata.json';
const SUPPORTED_VERSION = 'metadata.resource.k8s.io/v1alpha1';
const PCI_ATTRIBUTE = 'resource.kubernetes.io/pciBusID';
const MDEV_ATTRIBUTE = 'mdevUUID';
const MAX_FILE_BYTES = 1024 * 1024;
const PATH_PART = /^[A-Za-z0-9][-.A-Za-z0-9]*$/;

interface PodClaim {
  readonly name: string;
  readonly resourceClaimName?: string;
}

interface DeviceMetadata {
  readonly metadata?: { readonly name?: string };
  readonly requests?: readonly {
    readonly name?: string;
    readonly devices?: readonly { readonly attributes?: Readonly<Record<string, { readonly string?: string }>> }[];
  }[];
}

/** Why a claim has no usable device; its text goes into the error of the device that wants it. */
class ClaimFault extends Error {
  override readonly name = 'ClaimFault';
}

/** The key of a claim's request in {@link DeviceClaims}. */
export function claimKey({ claimName, requestName }: VmiClaimRequest): string {
  return `${claimName ?? ''}/${requestName ?? ''}`;
}

/** Whether a device comes out of a resource claim instead of a device plugin. */
export function isClaimed(device: VmiClaimRequest & { readonly deviceName?: string }): boolean {
  return (
    nonEmpty(device.deviceName) === undefined && (device.claimName !== undefined || device.requestName !== undefined)
  );
}

/**
 * Reads what the VMI's resource claims got, for every device and network that wants one. A claim that cannot be read
 * is kept with the reason.
 *
 * @source KubeVirt v1.9.0 pkg/dra/utils.go
 */
export async function readDeviceClaims(vmi: Vmi, root = DEVICE_ATTRIBUTES_DIR): Promise<DeviceClaims> {
  const { devices } = vmi.spec.domain;
  const wanted: VmiClaimRequest[] = [
    ...(devices.hostDevices ?? []).filter(isClaimed),
    ...(devices.gpus ?? []).filter(isClaimed),
    ...(vmi.spec.networks ?? []).flatMap(({ resourceClaim }) => (resourceClaim === undefined ? [] : [resourceClaim])),
  ];
  const found = new Map<string, ClaimedDevice | string>();
  for (const request of wanted) found.set(claimKey(request), await readClaim(vmi, root, request));
  return found;
}

async function readClaim(vmi: Vmi, root: string, request: VmiClaimRequest): Promise<ClaimedDevice | string> {
  const { claimName = '', requestName = '' } = request;
  try {
    const claim = podClaims(vmi).find(({ name }) => name === claimName);
    if (claim === undefined) throw new ClaimFault(`metadata not found for claim ${quote(claimName)}`);
    const direct = nonEmpty(claim.resourceClaimName);
    const dir = direct === undefined ? 'resourceclaimtemplates' : 'resourceclaims';
    const file = await metadataFile(join(root, dir), direct ?? claim.name, requestName);
    return deviceOf(await readMetadata(file), requestName);
  } catch (error) {
    return textOf(error);
  }
}

/** Entries of `spec.resourceClaims`, which the VMI's type leaves open. */
function podClaims(vmi: Vmi): readonly PodClaim[] {
  return (vmi.spec.resourceClaims ?? []).filter(isPodClaim);
}

function isPodClaim(value: unknown): value is PodClaim {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string';
}

async function metadataFile(root: string, claim: string, request: string): Promise<string> {
  const names = `claim ${quote(claim)} request ${quote(request)}`;
  const pattern = join(root, claim, request, `*${SUFFIX}`);
  // The names come from the VMI and must not lead out of the directory.
  const isSafe = PATH_PART.test(claim) && PATH_PART.test(request);
  const entries = isSafe ? await readdir(join(root, claim, request)).catch(() => []) : [];
  const [file, ...others] = entries.filter((name) => name.endsWith(SUFFIX));
  if (file === undefined) {
    throw new ClaimFault(`failed to read metadata for ${names}: no files matching ${pattern}`);
  }
  if (others.length > 0) {
    throw new ClaimFault(
      `found ${String(others.length + 1)} metadata files for ${names} but KubeVirt only supports exactly one driver per request`,
    );
  }
  return join(root, claim, request, file);
}

/** The file holds the same facts once per version of the API, newest first: the first known one counts. */
async function readMetadata(path: string): Promise<DeviceMetadata> {
  const unknown: string[] = [];
  for (const text of splitJsonStream(await readBounded(path))) {
    const object = parseObject(path, text);
    const version = object.apiVersion;
    if (typeof version !== 'string' || version === '') {
      throw new ClaimFault(`${path}: decode metadata object: missing apiVersion`);
    }
    if (version === SUPPORTED_VERSION) return object;
    unknown.push(version);
  }
  throw new ClaimFault(
    unknown.length === 0
      ? `${path}: no metadata objects found in stream`
      : `${path}: no compatible metadata version found in stream (unknown versions: ${unknown.join(', ')})`,
  );
}

async function readBounded(path: string): Promise<string> {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw new ClaimFault(`opening metadata file ${quote(path)}: ${textOf(error)}`, { cause: error });
  });
  try {
    const { size } = await file.stat();
    if (size > MAX_FILE_BYTES) throw new ClaimFault(`${path}: ${String(size)} bytes are too many for metadata`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

function parseObject(path: string, text: string): DeviceMetadata & { readonly apiVersion?: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ClaimFault(`${path}: decode metadata object: ${textOf(error)}`, { cause: error });
  }
  if (typeof value !== 'object' || value === null) throw new ClaimFault(`${path}: decode metadata object: no object`);
  return value;
}

function deviceOf(metadata: DeviceMetadata, requestName: string): ClaimedDevice {
  const requests = metadata.requests ?? [];
  const request = requests.find(({ name }) => name === requestName);
  if (request === undefined) {
    const available = requests.map(({ name }) => name ?? '').join(' ');
    throw new ClaimFault(
      `request ${quote(requestName)} not found in metadata for claim ${quote(metadata.metadata?.name ?? '')} ` +
        `(available requests: [${available}])`,
    );
  }
  const [device, ...others] = request.devices ?? [];
  if (device === undefined) throw new ClaimFault(`request ${quote(requestName)} has no devices`);
  if (others.length > 0) {
    throw new ClaimFault(
      `request ${quote(requestName)} has ${String(others.length + 1)} devices but KubeVirt only supports exactly ` +
        'one device per request (count > 1 is not supported)',
    );
  }
  return {
    pciBusId: nonEmpty(device.attributes?.[PCI_ATTRIBUTE]?.string),
    mdevUuid: nonEmpty(device.attributes?.[MDEV_ATTRIBUTE]?.string),
  };
}

/** Splits JSON objects that follow each other; what is no object is left for the parser to refuse. */
export function splitJsonStream(text: string): readonly string[] {
  const objects: string[] = [];
  let start = 0;
  let depth = 0;
  // Strings are stepped over whole, so that brackets inside them do not count; one without an end goes to the end.
  for (const { index, 0: token } of text.matchAll(/"(?:[^"\\]|\\[^])*(?:"|\\?$)|[{}]/g)) {
    if (token === '{') depth += 1;
    if (token !== '}') continue;
    depth -= 1;
    if (depth !== 0) continue;
    objects.push(text.slice(start, index + 1));
    start = index + 1;
  }
  if (text.slice(start).trim() !== '') objects.push(text.slice(start));
  return objects;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
