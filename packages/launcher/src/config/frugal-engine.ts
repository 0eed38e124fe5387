import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { CollectGarbage } from './idle-collector.ts';

/**
 * No optimising compilers, whose code and working memory are a quarter of what a launcher would hold, for calls that take
 * milliseconds with or without them; and garbage collection on demand.
 */
const FLAGS = ['--no-opt', '--no-maglev', '--optimize-for-size', '--expose-gc'];

/**
 * Makes V8 choose memory over speed from now on. On node's command line the same flags would make a launcher ready a
 * fifth later: they differ from those that node's own modules were compiled with, and node compiles them all again. So
 * this is for the moment when all modules are loaded.
 *
 * @returns what collects garbage
 */
export function makeEngineFrugal(): CollectGarbage {
  for (const flag of FLAGS) setFlagsFromString(flag);
  return runInNewContext('gc') as CollectGarbage;
}
