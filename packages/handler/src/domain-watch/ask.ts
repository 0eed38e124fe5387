import type { CmdClient } from '@virtwire/shared-proto';
import { unwrap } from '@virtwire/shared-proto';
import { parseDomainJson } from '@virtwire/vm-model';
import { HandlerError } from '../errors.ts';
import type { Domain } from '../model.ts';

/**
 * Asks a launcher for its domain.
 *
 * @returns undefined when it has none.
 * @throws {ProtoError} when it cannot be asked; {HandlerError} `Invalid` when its answer is no domain.
 */
export async function askDomain(client: CmdClient): Promise<Domain | undefined> {
  const { domain } = unwrap(await client.getDomain());
  if (domain === '') return undefined;
  try {
    return parseDomainJson(domain);
  } catch (error) {
    throw HandlerError.from(error, 'Invalid', 'the launcher sent something that is no domain');
  }
}
