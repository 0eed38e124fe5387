import { errorText } from '../errors.ts';
import type { Pass } from './pass.ts';
import type { Step } from './steps.ts';

/**
 * One executor per kind of step. Each does one thing, is idempotent, and takes no decision. `stop` as its result means
 * that the rest of the pass has to wait.
 */
export type Executors = {
  readonly [K in Exclude<Step['kind'], 'stop' | 'writeStatus'>]: (
    step: Extract<Step, { kind: K }>,
    pass: Pass,
  ) => Promise<unknown>;
};

type Run = (step: Step, pass: Pass) => Promise<unknown>;

/**
 * Runs the steps of a pass in order, up to the first that fails or says that the rest has to wait. `writeStatus` is not
 * run here: it needs the outcome.
 *
 * @returns the error of the step that failed; undefined when none did.
 */
export async function executeSteps(
  steps: readonly Step[],
  executors: Executors,
  pass: Pass,
  signal: AbortSignal,
): Promise<unknown> {
  for (const step of steps) {
    if (step.kind === 'writeStatus') continue;
    if (step.kind === 'stop') return undefined;
    signal.throwIfAborted();
    const run = executors[step.kind] as Run; // the executor of this very kind
    try {
      if ((await run(step, pass)) === 'stop') return undefined;
    } catch (error) {
      pass.log.trace({ reason: errorText(error) }, `step ${step.kind} failed`);
      return error;
    }
  }
  return undefined;
}
