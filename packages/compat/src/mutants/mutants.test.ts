import { describe, expect, test } from 'vitest';
import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import type { Emulations } from '../matrix/emulations.ts';
import { startOurHandler } from '../matrix/our-handler.ts';
import { startOurLauncher } from '../matrix/our-launcher.ts';
import { planCells, runCell } from '../matrix/run-matrix.ts';
import type { MatrixDeps } from '../matrix/run-matrix.ts';
import { MUTANTS } from './mutants.ts';
import type { Mutant } from './mutants.ts';
import { withHandlerFault, withLauncherFault } from './mutate.ts';

const emulations: Emulations = { startLauncher: startEmulatedLauncher, startHandler: startEmulatedHandler };

function mutated({ side, cmd = {}, notify = {} }: Pick<Mutant, 'side' | 'cmd' | 'notify'>): MatrixDeps {
  const deps = { emulations, handler: startOurHandler, launcher: startOurLauncher };
  if (side === 'launcher') return { ...deps, launcher: withLauncherFault(startOurLauncher, { cmd, notify }) };
  return { ...deps, emulations: withHandlerFault(emulations, { cmd, notify }) };
}

async function play({ side, killedBy }: Pick<Mutant, 'side' | 'killedBy'>, deps: MatrixDeps) {
  const [cell] = planCells([side], { lines: [killedBy.line], scenarios: [killedBy.scenario] });
  if (cell === undefined) throw new Error(`there is no cell ${killedBy.scenario} for the ${side}`);
  const { result } = await runCell(cell, deps);
  return result;
}

describe.each(MUTANTS)('$name', (mutant) => {
  test(`is caught by ${mutant.killedBy.scenario} with ${mutant.killedBy.line}`, async () => {
    expect(await play(mutant, mutated(mutant))).toMatchObject({ kind: 'fail' });
  });

  test('and by nothing else than the fault: through a relay that changes nothing, the cell does not fail', async () => {
    expect(await play(mutant, mutated({ side: mutant.side }))).not.toMatchObject({ kind: 'fail' });
  });
});
