import type { RunFamily } from '../family.ts';
import { runHandlerPhase } from './handler-phase.ts';
import { runLibvirt } from './libvirt.ts';

/** Every family that the runner knows, by the name of its folder. */
export const FAMILIES: ReadonlyMap<string, RunFamily> = new Map<string, RunFamily>([
  ['handler-phase', runHandlerPhase],
  ['libvirt', runLibvirt],
]);
