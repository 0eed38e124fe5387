import { cmdV1 } from '@virtwire/shared-proto';
import { emptyDomain, parseJson } from '@virtwire/vm-model';
import type { Domain } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { completeForHandlers, createDomainWriter } from './wire-domain.ts';

function domainWith(change: (domain: Domain) => void): Domain {
  const domain = emptyDomain();
  change(domain);
  return domain;
}
const printed = (domain: Domain): { Spec: Record<string, Record<string, unknown>> } =>
  parseJson(createDomainWriter().render(domain)) as { Spec: Record<string, Record<string, unknown>> };

describe('what crashes a handler written in Go is never sent', () => {
  test('an alias of a disk or interface, or a MAC, that is null', () => {
    const domain = domainWith(({ Spec }) => {
      Spec.Devices = { Disks: [{ Device: 'disk' }], Interfaces: [{ Type: 'ethernet' }] };
    });
    const { Devices } = printed(domain).Spec;
    expect(Devices?.['Disks']).toMatchObject([{ Alias: { Name: '', UserDefined: false } }]);
    expect(Devices?.['Interfaces']).toMatchObject([{ Alias: { Name: '', UserDefined: false }, MAC: { MAC: '' } }]);
  });

  test('what is there stays', () => {
    const domain = domainWith(({ Spec }) => {
      Spec.Devices = { Interfaces: [{ Alias: { Name: 'a', UserDefined: true }, MAC: { MAC: '02:00:00:00:00:01' } }] };
    });
    expect(completeForHandlers(domain)).toBe(domain);
  });
});

test.each<[string, object, boolean]>([
  ['that ended well', { EndTimestamp: '2026-01-01T00:00:00Z' }, true],
  ['that failed', { EndTimestamp: '2026-01-01T00:00:00Z', Failed: true }, false],
  ['that runs', { StartTimestamp: '2026-01-01T00:00:00Z' }, false],
])('handlers up to v1.5 are told of a migration %s: completed %s', (_title, migration, expected) => {
  const domain = domainWith(({ Spec }) => {
    Spec.Metadata.KubeVirt.Migration = migration;
  });
  const { Metadata } = printed(domain).Spec;
  const shown = (Metadata?.['KubeVirt'] as { Migration: { Completed?: boolean } }).Migration;
  expect(shown.Completed ?? false).toBe(expected);
});

describe('an ACPI table', () => {
  const table = { Path: '/slic', Type: 'slic' };
  const tableOf = (
    options: object,
    tables: (typeof table)[],
    ...later: [agent: string, options: object][]
  ): unknown => {
    const writer = createDomainWriter();
    writer.noteOptions(cmdV1.VirtualMachineOptions.fromPartial(options), later[0]?.[0]);
    for (const [agent, next] of later) writer.noteOptions(cmdV1.VirtualMachineOptions.fromPartial(next), agent);
    const domain = domainWith(({ Spec }) => {
      Spec.OS.ACPI = { Table: tables };
    });
    const { Spec } = parseJson(writer.render(domain)) as { Spec: { OS: { ACPI: { Table: unknown } } } };
    return Spec.OS.ACPI.Table;
  };
  const old = { DisksInfo: new Map([['cd', { format: 'raw' }]]) };

  test('is one object for a handler that is known to be older than v1.6', () => {
    expect(tableOf(old, [table])).toEqual(table);
  });

  test('is one object for a handler that says it is of v1.3, and one that described disks before', () => {
    expect(tableOf({}, [table], ['grpc-go/1.58.3', {}])).toEqual(table);
    expect(tableOf(old, [table], ['grpc-go/1.65.0', {}])).toEqual(table);
  });

  test('is an array once another handler has come', () => {
    expect(tableOf(old, [table], ['grpc-go/1.65.0', {}], ['grpc-go/1.75.1', {}])).toEqual([table]);
    expect(tableOf(old, [table], ['grpc-go/1.65.0', {}], ['another handler', {}])).toEqual([table]);
  });

  test('is an array for others, and for two tables', () => {
    expect(tableOf({}, [table])).toEqual([table]);
    expect(tableOf(old, [table, table])).toEqual([table, table]);
  });
});
