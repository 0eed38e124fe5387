import { parseJson, renderJson } from '@virtwire/vm-model';

import type { ReleaseLine } from '../../release-line.ts';
import { factsOf, linesAfter } from '../lines/lines.ts';
import { type JsonObject, objectsAt, TYPE_PLACES } from './domain-places.ts';

/**
 * Turns a domain document of the newest line into the one that a launcher of another line prints: its keys, in its
 * order, with its shapes.
 *
 * @param text every key of v1.9.0, printed as Go does; a `Completed` in the migration metadata is taken along.
 * @source domain-json.md 8
 */
export function shapeDomainJson(text: string, line: ReleaseLine): string {
  const document = parseJson(text) as JsonObject;
  const facts = factsOf(line);
  shapeMigration(document, facts.launcher.printsMigrationCompleted.value);
  if (facts.shared.acpiTable.value === 'object') shapeAcpiTable(document);
  // From the newest line back: each step undoes what one release brought.
  for (const later of linesAfter(line).toReversed()) {
    const { added, removed } = factsOf(later).shared.domainKeys.value;
    for (const key of removed) restoreKey(document, key);
    for (const key of added) dropKey(document, key);
  }
  if (facts.shared.printsNullCreationTimestamp.value) addCreationTimestamp(document);
  return renderJson(document);
}

function splitKey(typeAndKey: string): readonly [type: string, key: string] {
  const at = typeAndKey.lastIndexOf('.');
  return [typeAndKey.slice(0, at), typeAndKey.slice(at + 1)];
}

function objectsOf(document: JsonObject, type: string): readonly JsonObject[] {
  return (TYPE_PLACES[type] ?? []).flatMap((place) => objectsAt(document, place));
}

function dropKey(document: JsonObject, typeAndKey: string): void {
  const [type, key] = splitKey(typeAndKey);
  for (const object of objectsOf(document, type)) Reflect.deleteProperty(object, key);
}

/** Keys that a later release took away: what they held before, and after which key they stood. */
const RESTORED: Readonly<Record<string, (object: JsonObject) => void>> = {
  'BootMenu.Enabled': (menu) => replaceKey(menu, 'Enable', 'Enabled', (value) => value === 'yes'),
  'Devices.Watchdog': (devices) =>
    replaceKey(devices, 'Watchdogs', 'Watchdog', (value) => (Array.isArray(value) ? (value[0] ?? null) : null)),
  'Disk.ExpandDisksEnabled': (disk) => insertAfter(disk, 'Capacity', 'ExpandDisksEnabled', false),
};

function restoreKey(document: JsonObject, typeAndKey: string): void {
  const restore = RESTORED[typeAndKey];
  if (restore === undefined) return;
  for (const object of objectsOf(document, splitKey(typeAndKey)[0])) restore(object);
}

/** Completed stood between the times and the failure up to v1.5, and is gone since. */
function shapeMigration(document: JsonObject, printsCompleted: boolean): void {
  for (const migration of objectsOf(document, 'MigrationMetadata')) {
    const completed = migration['Completed'] ?? false;
    Reflect.deleteProperty(migration, 'Completed');
    if (printsCompleted) insertAfter(migration, 'EndTimestamp', 'Completed', completed);
  }
}

function shapeAcpiTable(document: JsonObject): void {
  for (const acpi of objectsAt(document, 'Spec.OS.ACPI')) {
    if (Array.isArray(acpi['Table'])) acpi['Table'] = acpi['Table'][0] ?? {};
  }
}

function addCreationTimestamp(document: JsonObject): void {
  const meta = document['ObjectMeta'] as JsonObject;
  if ('creationTimestamp' in meta) return;
  const before = ['name', 'generateName', 'namespace', 'selfLink', 'uid', 'resourceVersion', 'generation'];
  const entries = Object.entries(meta);
  rebuild(meta, [
    ...entries.filter(([key]) => before.includes(key)),
    ['creationTimestamp', null],
    ...entries.filter(([key]) => !before.includes(key)),
  ]);
}

function replaceKey(object: JsonObject, from: string, to: string, change: (value: unknown) => unknown): void {
  rebuild(
    object,
    Object.entries(object).map(([key, value]) => (key === from ? [to, change(value)] : [key, value])),
  );
}

function insertAfter(object: JsonObject, after: string, key: string, value: unknown): void {
  const entries = Object.entries(object);
  const at = entries.findIndex(([name]) => name === after) + 1;
  rebuild(object, [...entries.slice(0, at), [key, value], ...entries.slice(at)]);
}

/** Key order is part of the document: readers do not mind, but people and hashes compare texts. */
function rebuild(object: JsonObject, entries: readonly (readonly [string, unknown])[]): void {
  for (const key of Object.keys(object)) Reflect.deleteProperty(object, key);
  for (const [key, value] of entries) object[key] = value;
}
