import { domainName, emptyDomain } from '@virtwire/vm-model';
import type { Domain } from '../model.ts';

/** Which VMI a domain stands for when its launcher cannot be asked. */
export interface DomainIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * A domain that is not known: its launcher is there and does not answer.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/cache/domain-watcher.go (preserving domain with Unknown status)
 */
export function unknownDomain({ namespace, name, uid }: DomainIdentity): Domain {
  const domain = emptyDomain();
  domain.ObjectMeta = { namespace, name, uid };
  domain.Spec.Name = domainName(namespace, name);
  domain.Spec.Metadata.KubeVirt.UID = uid;
  domain.Status.Status = 'Unknown';
  return domain;
}

/** A domain whose launcher is gone for good; `hasMetadataUid` as the watchdog reports it, not the list. */
export function goneDomain({ namespace, name, uid }: DomainIdentity, at: string, hasMetadataUid: boolean): Domain {
  const domain = emptyDomain();
  domain.ObjectMeta = { namespace, name, uid, deletionTimestamp: at };
  domain.Spec.Name = domainName(namespace, name);
  if (hasMetadataUid) domain.Spec.Metadata.KubeVirt.UID = uid;
  return domain;
}
