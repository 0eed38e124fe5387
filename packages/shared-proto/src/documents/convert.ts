import type { Vmi } from '@virtwire/vm-model';
import { type EmbeddedField, type EmbeddedValue, printEmbedded, readEmbedded } from '@virtwire/vm-model/payloads';

import type { DocumentTree } from './table.ts';

type Message = Readonly<Record<string, unknown>>;

/** Fields whose JSON travels as a string; all others are bytes. */
const TEXT_FIELDS: ReadonlySet<EmbeddedField> = new Set<EmbeddedField>([
  'DomainResponse.domain',
  'DomainStatsResponse.domainStats',
  'GuestInfoResponse.guestInfoResponse',
  'GuestUserListResponse.guestUserListResponse',
  'GuestFilesystemsResponse.guestFilesystemsResponse',
]);

/**
 * Reads the documents of a message; everything else stays as it is, fields that are not known included.
 *
 * @throws {VmModelError} `InvalidJson`, with Go's words.
 */
export function readDocuments(message: object, tree: DocumentTree): object {
  const given = message as Message;
  const documents: Record<string, unknown> = {};
  for (const [key, place] of Object.entries(tree)) {
    const value = given[key];
    if (value === undefined) continue;
    documents[key] = typeof place === 'string' ? readLeaf(place, value) : readDocuments(value as object, place);
  }
  return { ...message, ...documents };
}

/** Prints the documents of a message; what is undefined or bytes stays so. */
export function printDocuments(message: object, tree: DocumentTree): object {
  const given = message as Message;
  const printed: Record<string, unknown> = {};
  for (const [key, place] of Object.entries(tree)) {
    const value = given[key];
    if (value === undefined) continue;
    printed[key] = typeof place === 'string' ? printLeaf(place, value) : printDocuments(value as object, place);
  }
  return { ...message, ...printed };
}

function readLeaf(place: EmbeddedField | 'VMI', value: unknown): unknown {
  if (place !== 'VMI') return readEmbedded(place, value as string | Uint8Array);
  return readEmbedded('VMI.vmiJson', (value as { readonly vmiJson: Uint8Array }).vmiJson);
}

function printLeaf(place: EmbeddedField | 'VMI', value: unknown): unknown {
  if (value instanceof Uint8Array) return place === 'VMI' ? { vmiJson: value } : value;
  if (place === 'VMI') return { vmiJson: Buffer.from(printEmbedded('VMI.vmiJson', value as Vmi)) };
  const json = printEmbedded(place, value as EmbeddedValue<typeof place>);
  return TEXT_FIELDS.has(place) ? json : Buffer.from(json);
}
