import { emptyDomain, splitDomainName } from '@virtwire/vm-model';
import type { Domain, DomainInterfaceStatus, DomainStatus, FSFreeze } from '@virtwire/vm-model';
import type { ShownAgentFacts } from '../agent/store.ts';
import type { AgentInterface } from '../agent/types.ts';

/** API version that every Domain document carries. */
const DOMAIN_API_VERSION = '1.2.2';

/**
 * A Domain document that knows only its name and owner.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go NewDomainReferenceFromName
 */
export function newDomain(domainName: string, uid: string | undefined): Domain {
  const { namespace, name } = splitDomainName(domainName);
  const domain = emptyDomain();
  return {
    ...domain,
    kind: 'Domain',
    apiVersion: DOMAIN_API_VERSION,
    ObjectMeta: { name, namespace, ...(uid === undefined ? {} : { uid }) },
    Spec: { ...domain.Spec, Metadata: { KubeVirt: { UID: uid ?? '' } } },
  };
}

/** Go prints an empty list that nobody filled as `null`. */
function interfacesOf(interfaces: readonly AgentInterface[]): DomainInterfaceStatus[] | undefined {
  if (interfaces.length === 0) return undefined;
  return interfaces.map(({ IPs, ...nic }) => (IPs.length === 0 ? nic : { ...nic, IPs }));
}

/** A status that also says what the agent is known to have told; what it did not tell stays as it is. */
export function withAgentFacts(status: DomainStatus, shown: ShownAgentFacts): DomainStatus {
  return {
    ...status,
    ...(shown.interfaces === undefined ? {} : { Interfaces: interfacesOf(shown.interfaces) }),
    ...(shown.os === undefined ? {} : { OSInfo: shown.os }),
    ...(shown.fsFreezeStatus === undefined ? {} : { FSFreezeStatus: { Status: shown.fsFreezeStatus } as FSFreeze }),
  };
}
