import { expect, test } from 'vitest';

import { bundledJson } from '../../testing/bundle.ts';
import { shapeDomainJson } from './domain-shape.ts';

const sample = (release: string, name: string): Record<string, unknown> =>
  bundledJson('wire-samples', `${release}/${name}.json`) as Record<string, unknown>;

/** Where each value stands, in order; the samples fill lists and objects alike. */
function keysOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, item]) => keysOf(item, `${path}.${key}`));
}

test.each(['domain-zero', 'domain-minimal', 'domain-full'])('v1.9 prints %s as v1.9.0 does', (name) => {
  const text = JSON.stringify(sample('v1.9.0', name));
  expect(shapeDomainJson(text, 'v1.9')).toBe(text);
});

test.each(['domain-zero', 'domain-minimal', 'domain-full'])('v1.0 prints the keys of %s as v1.0.1 does', (name) => {
  const shaped: unknown = JSON.parse(shapeDomainJson(JSON.stringify(sample('v1.9.0', name)), 'v1.0'));
  expect(keysOf(shaped)).toEqual(keysOf(sample('v1.0.1', name)));
});

test('v1.2 to v1.5 print one ACPI table as an object', () => {
  const full = JSON.stringify(sample('v1.9.0', 'domain-full'));
  const table = (line: 'v1.1' | 'v1.2' | 'v1.5' | 'v1.6'): unknown =>
    (JSON.parse(shapeDomainJson(full, line)) as { Spec: { OS: { ACPI?: { Table: unknown } } } }).Spec.OS.ACPI?.Table;
  expect(table('v1.1')).toBeUndefined();
  expect(table('v1.2')).toEqual({ Path: 's', Type: 's' });
  expect(table('v1.5')).toEqual({ Path: 's', Type: 's' });
  expect(table('v1.6')).toEqual([{ Path: 's', Type: 's' }]);
});

test('v0.59 has the old boot menu and watchdog', () => {
  const shaped = JSON.parse(shapeDomainJson(JSON.stringify(sample('v1.9.0', 'domain-full')), 'v0.59')) as {
    Spec: { OS: { BootMenu: object }; Devices: object };
  };
  expect(Object.keys(shaped.Spec.OS.BootMenu)).toEqual(['Enabled', 'Timeout']);
  expect(shaped.Spec.Devices).toHaveProperty('Watchdog');
  expect(shaped.Spec).not.toHaveProperty('VCPUs');
});
