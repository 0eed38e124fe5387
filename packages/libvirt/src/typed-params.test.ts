import { expect, test } from 'vitest';
import { typedParams, TypedParams } from './typed-params.ts';

test('gives each migration parameter the wire type that the daemon wants for its name', () => {
  const params = typedParams({
    migrate_uri: 'unix:///run/m',
    bandwidth: 64,
    'parallel.connections': 8n,
    migrate_disks: ['vda', 'vdb'],
    compression: undefined,
  });
  expect(params).toEqual([
    { field: 'migrate_uri', type: 'string', value: 'unix:///run/m' },
    { field: 'bandwidth', type: 'ullong', value: 64n },
    { field: 'parallel.connections', type: 'int', value: 8 },
    { field: 'migrate_disks', type: 'string', value: 'vda' },
    { field: 'migrate_disks', type: 'string', value: 'vdb' },
  ]);
});

test('gives numbered and unknown names a type', () => {
  expect(
    typedParams({ 'cputune.vcpupin0': '11', 'x.y': 1, 'x.z': 1n, f: 0.5, b: true, s: 't' }).map((p) => p.type),
  ).toEqual(['string', 'int', 'ullong', 'double', 'boolean', 'string']);
});

test.each<[string, Parameters<typeof typedParams>[0], string]>([
  ['a text for a number', { bandwidth: 'x' }, 'typed parameter bandwidth: string given, ullong wanted'],
  ['a number for a text', { migrate_uri: 1 }, 'typed parameter migrate_uri: number given, string wanted'],
  ['a fraction for 64 bits', { bandwidth: 1.5 }, 'typed parameter bandwidth: number given, ullong wanted'],
])('refuses %s', (_title, input, message) => {
  expect(() => typedParams(input)).toThrow(expect.objectContaining({ kind: 'InvalidArgument', message }) as Error);
});

test('reads received parameters whatever their width', () => {
  const params = new TypedParams([
    { field: 'a', type: 'int', value: -1 },
    { field: 'b', type: 'ullong', value: 2n ** 63n },
    { field: 'c', type: 'boolean', value: true },
    { field: 'd', type: 'string', value: 'text' },
    { field: 'd', type: 'string', value: 'more' },
  ]);
  expect([params.bigint('a'), params.bigint('b'), params.bigint('d'), params.bigint('none')]).toEqual([
    -1n,
    2n ** 63n,
    undefined,
    undefined,
  ]);
  expect([params.number('a'), params.number('b'), params.number('c'), params.number('d')]).toEqual([
    -1,
    2 ** 63,
    1,
    undefined,
  ]);
  expect([params.boolean('a'), params.boolean('c'), params.boolean('d')]).toEqual([true, true, undefined]);
  expect([params.text('d'), params.text('a')]).toEqual(['text', undefined]);
  expect(params.all('d')).toEqual(['text', 'more']);
  expect(params.toObject()).toEqual({ a: -1, b: 2n ** 63n, c: true, d: 'text' });
  expect([...params]).toHaveLength(5);
});
