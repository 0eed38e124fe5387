import { type Domain, parseDomainJson, parseJson } from '@virtwire/vm-model';

import type { ReleaseLine } from '../../release-line.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { type JsonObject, objectsAt, TYPE_PLACES } from '../launcher/domain-places.ts';
import { factsOf, linesAfter } from '../lines/lines.ts';

/** How a handler of a release takes a domain document. */
export type ReadDomain =
  | { readonly kind: 'domain'; readonly domain: Domain; readonly raw: JsonObject }
  /** The decoder's words; the whole document is refused. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** What a Go handler dies of once it uses the document. */
  | { readonly kind: 'crash'; readonly reason: string };

/**
 * Reads a domain document as a handler of a line does: keys by exact case, unknown ones ignored, null as zero, another
 * JSON type than the release's own refused.
 *
 * @source releases.json eras.jsonDecoding; domain-json.md 1 Reader, 5, 8
 */
export function readDomain(text: string, line: ReleaseLine): ReadDomain {
  try {
    const raw = parseJson(text) as JsonObject;
    dropUnknownKeys(raw, line);
    const mismatch = shapeMismatch(raw, factsOf(line));
    if (mismatch !== undefined) return { kind: 'refused', reason: mismatch };
    const domain = parseDomainJson(JSON.stringify(raw, bigintAsNumber));
    const fatal = factsOf(line).handler.crashesOnNullAlias.value ? nullThatCrashes(domain) : undefined;
    return fatal === undefined ? { kind: 'domain', domain, raw } : { kind: 'crash', reason: fatal };
  } catch (caught) {
    return { kind: 'refused', reason: caught instanceof Error ? caught.message : String(caught) };
  }
}

/** Nothing that a handler reads is as large; only the type of a number matters here. */
function bigintAsNumber(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}

/** A key that came later is unknown to the release: whatever it holds does not matter. */
function dropUnknownKeys(raw: JsonObject, line: ReleaseLine): void {
  const later = linesAfter(line).flatMap((one) => factsOf(one).shared.domainKeys.value.added);
  for (const typeAndKey of later) {
    const at = typeAndKey.lastIndexOf('.');
    const places = TYPE_PLACES[typeAndKey.slice(0, at)] ?? [];
    for (const object of places.flatMap((place) => objectsAt(raw, place))) {
      Reflect.deleteProperty(object, typeAndKey.slice(at + 1));
    }
  }
}

/** Types that changed from one release to another. */
function shapeMismatch(raw: JsonObject, { shared }: LineFacts): string | undefined {
  const field = 'Go struct field OSACPI.Spec.OS.ACPI.Table of type';
  for (const acpi of objectsAt(raw, 'Spec.OS.ACPI')) {
    const table = acpi['Table'];
    if (shared.acpiTable.value === 'object' && Array.isArray(table)) {
      return `json: cannot unmarshal array into ${field} api.ACPITable`;
    }
    if (shared.acpiTable.value === 'array' && isObject(table)) {
      return `json: cannot unmarshal object into ${field} []api.ACPITable`;
    }
  }
  return undefined;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * A domain that was only defined has placeholder interfaces without alias, and real handlers bear it.
 *
 * @source domain-json.md 5; captures handlers/v1.3.1/lifecycle/004-notify-HandleDomainEvent
 */
function nullThatCrashes({ Spec, Status }: Domain): string | undefined {
  if (Status.Status === 'Shutoff') return undefined;
  for (const nic of Spec.Devices.Interfaces ?? []) {
    if (nic.Alias === undefined) return 'an interface with Alias null';
    if (nic.MAC === undefined) return 'an interface with MAC null';
  }
  const disk = Spec.Devices.Disks?.find(
    ({ Alias, Source }) => Alias === undefined && ((Source?.File ?? '') !== '' || (Source?.Dev ?? '') !== ''),
  );
  return disk === undefined ? undefined : 'a disk with a source and Alias null';
}
