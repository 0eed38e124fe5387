import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { CompatError } from '../errors.ts';
import { pairName, reasonOf } from '../report/words.ts';
import { planCells, pairOf, runCell } from './run-matrix.ts';
import type { MatrixOptions } from './run-matrix.ts';
import type { StartHandler, StartLauncher } from './subjects.ts';

/** What is put to the test: one side or both. */
export interface CompatSubjects {
  readonly handler?: StartHandler;
  readonly launcher?: StartLauncher;
}

/** The functions of a test runner, vitest's by their names. */
export interface TestRunner {
  readonly describe: (name: string, define: () => void) => void;
  readonly test: (
    name: string,
    run: (context: { skip(note?: string): void }) => Promise<void>,
    timeoutMs: number,
  ) => void;
}

const CELL_LIMIT_MS = 60_000;

/**
 * Defines a test for every cell of the matrix, one `describe` per pair: a failing cell fails, a part that is not built is
 * skipped with its name, and a declared difference passes.
 */
export function defineCompatSuite(subjects: CompatSubjects, runner: TestRunner, options: MatrixOptions = {}): void {
  const emulations = { startLauncher: startEmulatedLauncher, startHandler: startEmulatedHandler };
  const sides = (['handler', 'launcher'] as const).filter((side) => subjects[side] !== undefined);
  const pairs = Map.groupBy(planCells(sides, options), (planned) => pairName(pairOf(planned)));
  for (const [name, members] of pairs) {
    runner.describe(name, () => {
      for (const planned of members) {
        const run = async (context: { skip(note?: string): void }): Promise<void> => {
          const { result, trace } = await runCell(planned, { emulations, ...subjects }, options.signal);
          if (result.kind === 'notBuilt') return context.skip(`not built: ${result.missingPart}`);
          if (result.kind !== 'fail') return;
          throw new CompatError('Deviation', `${reasonOf(result) ?? ''}\n${trace.join('\n')}`);
        };
        runner.test(planned.scenario.title, run, CELL_LIMIT_MS);
      }
    });
  }
}
