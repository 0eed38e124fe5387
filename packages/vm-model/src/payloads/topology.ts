import { list, omitEmpty, pointer, text, uint32, uint64 } from './field-types.ts';
import { type ObjectOf, payload, struct } from './struct.ts';

const some = omitEmpty(text);
const number = omitEmpty(uint32);
const big = omitEmpty(uint64);

const cellFields = {
  id: number,
  memory: omitEmpty(pointer(struct('Memory', { amount: big, unit: some }))),
  pages: omitEmpty(list(struct('Pages', { count: big, unit: some, size: number }))),
  distances: omitEmpty(list(struct('Sibling', { id: number, value: big }))),
  cpus: omitEmpty(list(struct('CPU', { id: number, siblings: omitEmpty(list(uint32)) }))),
};
const fields = { numa_cells: omitEmpty(list(struct('Cell', cellFields))) };

/** NUMA topology of a node, with the names of the proto file. */
export type NodeTopology = ObjectOf<typeof fields>;

/**
 * `status.migrationState.targetNodeTopology` of a VMI: the topology of the options as Go prints it plainly, with
 * `numa_cells`, numbers as numbers, and without zero values. The JSON form of proto3 is another one.
 */
export const nodeTopology = payload(struct('Topology', fields));
