import { randomUUID } from 'node:crypto';

import type { Vmi } from '@virtwire/vm-model';

import { nonEmpty } from '../converter/non-empty.ts';
import type { CloudInitData, SeedMetadata } from './cloud-init-source.ts';

const INSTANCE_TYPE_ANNOTATIONS = ['kubevirt.io/cluster-instancetype-name', 'kubevirt.io/instancetype-name'];
const MAX_HOSTNAME = 63;

/**
 * What cloud-init is told of the VM beside its data, in the form of the seed's kind. Devices are not in it, since their
 * addresses come later.
 *
 * @source KubeVirt v1.9.0 pkg/cloud-init/cloud-init.go
 */
export function seedMetadata(vmi: Vmi, data: CloudInitData): SeedMetadata {
  if (typeof data.metadata === 'object') return data.metadata;
  const isWhole = data.metadata !== 'minimal';
  return data.kind === 'noCloud' ? noCloudMetadata(vmi, data, isWhole) : configDriveMetadata(vmi, data, isWhole);
}

/** A field that is left out when it is empty. */
export function named(key: string, value: unknown): Record<string, unknown> {
  return value === undefined || value === '' ? {} : { [key]: value };
}

function noCloudMetadata(vmi: Vmi, { publicKeys }: CloudInitData, isWhole: boolean): SeedMetadata {
  return {
    ...named('instance-type', instanceType(vmi)),
    'instance-id': instanceUuid(vmi),
    ...(isWhole ? named('local-hostname', hostnameOf(vmi)) : {}),
    ...(isWhole ? named('public-keys', numbered(publicKeys)) : {}),
  };
}

function configDriveMetadata(vmi: Vmi, { publicKeys }: CloudInitData, isWhole: boolean): SeedMetadata {
  return {
    ...named('instance_type', instanceType(vmi)),
    instance_id: `${vmi.metadata.name}.${vmi.metadata.namespace}`,
    ...(isWhole ? named('hostname', hostnameOf(vmi)) : {}),
    ...named('uuid', instanceUuid(vmi)),
    ...(isWhole ? named('public_keys', numbered(publicKeys)) : {}),
  };
}

/** The machine's UUID; a machine without firmware of its own has a new one at each start. */
function instanceUuid({ spec }: Vmi): string {
  const { firmware } = spec.domain;
  return firmware === undefined ? randomUUID() : (firmware.uuid ?? '');
}

/** Host name of the guest: what the spec says, else the VMI's name up to its first dot, as long as DNS allows. */
export function hostnameOf(vmi: Vmi): string {
  return nonEmpty(vmi.spec.hostname) ?? (vmi.metadata.name.split('.')[0] ?? '').slice(0, MAX_HOSTNAME);
}

function instanceType(vmi: Vmi): string | undefined {
  const { annotations = {} } = vmi.metadata;
  return INSTANCE_TYPE_ANNOTATIONS.map((name) => annotations[name]).find(
    (value) => value !== undefined && value !== '',
  );
}

function numbered(keys: readonly string[]): Record<string, string> | undefined {
  return keys.length === 0 ? undefined : Object.fromEntries(keys.map((key, index) => [String(index), key]));
}
