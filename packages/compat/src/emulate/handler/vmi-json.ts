import { parseVmiJson, renderJson, replacePvcByHostDisk, type Vmi } from '@virtwire/vm-model';

import type { HandlerFacts } from '../facts/line-facts.ts';
import { objectsAt } from '../launcher/domain-places.ts';
import type { Fields } from '../schema/release-schema.ts';

/**
 * A VMI as a handler of a line sends it: as it holds the object, so without kind and apiVersion and without the fields
 * that its release does not know, and with claims replaced by host disks.
 *
 * @source captures README facts VMI JSON; wire.md 4 VMI
 */
export function wireVmi(vmi: Fields, facts: HandlerFacts): Vmi {
  const held = Object.fromEntries(Object.entries(vmi).filter(([key]) => key !== 'kind' && key !== 'apiVersion'));
  const copy = parseVmiJson(renderJson(held));
  for (const path of facts.unknownVmiFields.value) {
    const at = path.lastIndexOf('.');
    for (const object of objectsAt(copy, path.slice(0, at))) Reflect.deleteProperty(object, path.slice(at + 1));
  }
  return replacePvcByHostDisk(copy);
}
