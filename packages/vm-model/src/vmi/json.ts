import { parseJson, renderJson } from '../json/lossless.ts';
import { completeVmi } from './complete.ts';
import type { Vmi } from './vmi.ts';

/**
 * Reads the JSON of a VMI as Go does, and keeps every field, known or not; integers beyond 2^53 become bigint.
 *
 * Afterwards a VMI is what its type says: `null` means not set and is gone (unset times stay null), lists and maps hold
 * Go's zero value in its place, and what every object of a kind has (`metadata`, `spec.domain.devices`, the name of a
 * disk) is there.
 *
 * @throws {VmModelError} `InvalidJson` when the text is no JSON, or a field of another type than KubeVirt v1.9's; the
 * message starts with the field.
 */
export function parseVmiJson(text: string): Vmi {
  return completeVmi(parseJson(text));
}

/** Prints a VMI with everything it carries; compact, or with so many blanks per level for people. */
export function renderVmiJson(vmi: Vmi, indent?: number): string {
  return renderJson(vmi, indent);
}
