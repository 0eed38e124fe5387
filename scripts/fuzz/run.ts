import { readCorpus } from './corpus.ts';
import { createRandom } from './random.ts';
import { TARGETS } from './targets.ts';

/** What feeding a target has shown. */
export interface FuzzFigures {
  readonly target: string;
  readonly inputs: number;
  readonly seconds: number;
  /** The longest that one input took; of calls, the longest wait for a free place. */
  readonly slowestMs: number;
  readonly peakRssMiB: number;
}

/** Which inputs to make. */
export interface FuzzRun {
  readonly target: string;
  readonly inputs: number;
  readonly seed: number;
  /** Told from time to time how many inputs were fed. */
  readonly onProgress?: (fed: number) => void;
}

const PROGRESS_EVERY = 500;
const MIB = 1_048_576;

/**
 * Feeds a target. Input `n` depends on the seed and `n` alone, so that a failure can be had again.
 *
 * @throws {Error} that names the input.
 */
export async function fuzz({ target: name, inputs, seed, onProgress }: FuzzRun): Promise<FuzzFigures> {
  const plan = TARGETS[name];
  if (plan === undefined) throw new Error(`there is no target ${name}`);
  const target = await plan.open(readCorpus());
  const startedAtMs = performance.now();
  let [slowestMs, peakRss] = [0, 0];
  for (let n = 0; n < inputs; n += 1) {
    const beganAtMs = performance.now();
    try {
      await target.feed(createRandom(seed + n));
    } catch (caught) {
      throw new Error(`${name}, input ${seed + n}: ${String(caught)}`, { cause: caught });
    }
    slowestMs = Math.max(slowestMs, performance.now() - beganAtMs);
    if (n % PROGRESS_EVERY !== 0) continue;
    peakRss = Math.max(peakRss, process.memoryUsage.rss());
    onProgress?.(n);
  }
  await target[Symbol.asyncDispose]();
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return { target: name, inputs, seconds, slowestMs, peakRssMiB: peakRss / MIB };
}
