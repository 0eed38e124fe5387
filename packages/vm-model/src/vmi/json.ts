import { VmModelError } from '../errors.ts';
import { parseJson, renderJson } from '../json/lossless.ts';
import type { Vmi } from './vmi.ts';

/**
 * Reads the JSON of a VMI and keeps every field, known or not; integers beyond 2^53 become bigint. `null` in the spec
 * means not set, as for Go, and is left out, so that nobody has to look for it.
 *
 * Only the shape that every user of a VMI relies on is checked: metadata, spec, spec.domain and spec.domain.devices
 * exist afterwards.
 *
 * @throws {VmModelError} `InvalidJson` when the text is no JSON object, or one of these is no object.
 */
export function parseVmiJson(text: string): Vmi {
  const value = parseJson(text);
  const vmi = ensureObject({ vmi: value }, 'vmi', 'VirtualMachineInstance');
  ensureObject(vmi, 'metadata', 'metadata');
  const spec = ensureObject(vmi, 'spec', 'spec');
  const domain = ensureObject(spec, 'domain', 'spec.domain');
  ensureObject(domain, 'devices', 'spec.domain.devices');
  dropNulls(spec);
  if (vmi['status'] !== undefined) ensureObject(vmi, 'status', 'status');
  return vmi as unknown as Vmi;
}

function ensureObject(parent: Record<string, unknown>, key: string, path: string): Record<string, unknown> {
  const value = parent[key] ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new VmModelError(
      'InvalidJson',
      `${path} must be an object, not ${Array.isArray(value) ? 'a list' : typeof value}`,
    );
  }
  parent[key] = value;
  return value as Record<string, unknown>;
}

function dropNulls(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (item === null && !Array.isArray(value)) Reflect.deleteProperty(value, key);
    else dropNulls(item);
  }
}

/** Prints a VMI with everything it carries; compact, or with so many blanks per level for people. */
export function renderVmiJson(vmi: Vmi, indent?: number): string {
  return renderJson(vmi, indent);
}
