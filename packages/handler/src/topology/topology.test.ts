import { expect, test } from 'vitest';
import { parseTopology } from './topology.ts';

test('a broken text is a clear error', () => {
  expect(() => parseTopology('<capabilities><host>')).toThrow(/^cannot read the capabilities of the node: /);
});

test('a host without NUMA cells has an empty topology', () => {
  expect(parseTopology('<capabilities><host/></capabilities>')).toEqual({ numa_cells: [] });
});

test('cells keep their memory, pages, distances and CPUs; a range of siblings is left out', () => {
  const xml = `<capabilities><host><topology><cells num="1"><cell id="3"><memory unit="KiB">77</memory>
    <pages unit="KiB" size="4">12</pages><distances><sibling id="3" value="10"/></distances>
    <cpus num="2"><cpu id="0" siblings="0,2"/><cpu id="1" siblings="1-3"/></cpus></cell></cells></topology>
    <cpu><topology sockets="1"/></cpu></host></capabilities>`;
  expect(parseTopology(xml).numa_cells).toEqual([
    {
      id: 3,
      memory: { amount: 77n, unit: 'KiB' },
      pages: [{ count: 12n, unit: 'KiB', size: 4 }],
      distances: [{ id: 3, value: 10n }],
      cpus: [
        { id: 0, siblings: [0, 2] },
        { id: 1, siblings: [] },
      ],
    },
  ]);
});
