export { comparableSteps, isAccident } from './comparable-steps.ts';
export { createDiskWorld } from './disk-world.ts';
export type { DiskWorld, ToolRun } from './disk-world.ts';
export { runVector } from './run-vector.ts';
export type { VectorResult } from './run-vector.ts';
export { createVectorPreparation } from './vector-preparation.ts';
export type { PreparedInput } from './vector-preparation.ts';
export type { TraceEntry, VectorOutput } from './vector-types.ts';
