import type { CmdClient } from '@virtwire/shared-proto';
import { unwrap } from '@virtwire/shared-proto';
import { withDocuments } from '@virtwire/shared-proto/documents';
import { HandlerError } from '../errors.ts';
import { objectKey } from '../model.ts';
import type { Domain } from '../model.ts';
import type { DomainIdentity } from './domain-object.ts';
import { domainKey } from './domain-store.ts';

/**
 * Asks a launcher for its domain.
 *
 * @param owner the VMI that the launcher belongs to; the domain of another one is refused (P4).
 * @returns undefined when it has none.
 * @throws {ProtoError} when it cannot be asked or answers with no domain; {HandlerError} `Invalid` when it is not its own.
 */
export async function askDomain(client: CmdClient, owner: DomainIdentity): Promise<Domain | undefined> {
  const { domain } = unwrap(await withDocuments(client).getDomain());
  if (domain === undefined) return undefined;
  const uid = domain.Spec.Metadata.KubeVirt.UID ?? '';
  if (domainKey(domain) === objectKey(owner) && (uid === '' || uid === owner.uid)) {
    domain.Spec.Metadata.KubeVirt.UID = owner.uid; // not there yet in a domain that is just being defined
    return domain;
  }
  const told = `${domainKey(domain)} (${uid})`;
  throw new HandlerError('Invalid', `the launcher of ${objectKey(owner)} (${owner.uid}) told the domain of ${told}`);
}
