import type { Domain, DomainSpec, DomainStatus, FSFreeze } from '@virtwire/vm-model';
import type { ShownAgentFacts } from '../agent/store.ts';
import { parseDomainName } from '../config/paths.ts';

/** API version that every Domain document carries. */
export const DOMAIN_API_VERSION = '1.2.2';

const EMPTY_OS_INFO = {
  Name: '',
  KernelRelease: '',
  Version: '',
  PrettyName: '',
  VersionId: '',
  KernelVersion: '',
  Machine: '',
  Id: '',
};

/** A spec with Go's zero values and the VMI's UID in its metadata. */
export function emptySpec(uid: string): DomainSpec {
  return {
    Memory: {},
    OS: { Type: {} },
    Devices: {},
    CPU: {},
    Metadata: { KubeVirt: { UID: uid } },
  } as DomainSpec;
}

/**
 * A Domain document that knows only its name and owner.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go NewDomainReferenceFromName
 */
export function newDomain(domainName: string, uid: string | undefined): Domain {
  const { namespace, name } = parseDomainName(domainName);
  return {
    kind: 'Domain',
    apiVersion: DOMAIN_API_VERSION,
    ObjectMeta: { name, namespace, ...(uid === undefined ? {} : { uid }) },
    Spec: emptySpec(uid ?? ''),
    Status: { OSInfo: EMPTY_OS_INFO, FSFreezeStatus: { Status: '' } },
  };
}

/** A status that also says what the agent is known to have told; what it did not tell stays as it is. */
export function withAgentFacts(status: DomainStatus, shown: ShownAgentFacts): DomainStatus {
  return {
    ...status,
    ...(shown.interfaces === undefined ? {} : { Interfaces: [...shown.interfaces] }),
    ...(shown.os === undefined ? {} : { OSInfo: shown.os }),
    ...(shown.fsFreezeStatus === undefined ? {} : { FSFreezeStatus: { Status: shown.fsFreezeStatus } as FSFreeze }),
  };
}

/** Time as Kubernetes writes it: UTC, whole seconds. */
export function renderTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
