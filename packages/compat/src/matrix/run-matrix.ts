import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Cell, CellResult, Pair, SideUnderTest } from '../cell.ts';
import type { ReleaseLine } from '../release-line.ts';
import { RELEASE_LINES } from '../release-line.ts';
import { HandlerScene } from '../scenarios/handler-scene.ts';
import type { SceneDeps } from '../scenarios/handler-scene.ts';
import { LauncherScene } from '../scenarios/launcher-scene.ts';
import { SCENARIOS } from '../scenarios/scenarios.ts';
import type { Scenario } from '../scenarios/scenarios.ts';
import { PartMissing } from '../scenarios/verdicts.ts';
import type { Emulations } from './emulations.ts';
import type { StartHandler, StartLauncher } from './subjects.ts';

/** What a matrix is made of. A side that is left out is not tested. */
export interface MatrixDeps {
  readonly emulations: Emulations;
  readonly handler?: StartHandler;
  readonly launcher?: StartLauncher;
}

/** Which part of the matrix to run, and how. */
export interface MatrixOptions {
  readonly lines?: readonly ReleaseLine[];
  /** Names of scenarios; default all. */
  readonly scenarios?: readonly string[];
  /** Cells at a time. Default 6: cells wait more than they work. */
  readonly concurrency?: number;
  readonly onCell?: (cell: Cell) => void;
  readonly signal?: AbortSignal;
}

/** A cell that is still to be run. */
export interface PlannedCell {
  readonly scenario: Scenario;
  readonly side: SideUnderTest;
  readonly line: ReleaseLine;
}

const CELL_LIMIT_MS = 40_000;
const MAX_TRACE_LINES = 400;
const DEFAULT_CONCURRENCY = 6;

/** The pair that a cell is about. */
export function pairOf({ side, line }: Pick<PlannedCell, 'side' | 'line'>): Pair {
  return side === 'handler' ? { handler: 'new', launcher: line } : { handler: line, launcher: 'new' };
}

/** The cells of a matrix, oldest release first. */
export function planCells(sides: readonly SideUnderTest[], options: MatrixOptions = {}): readonly PlannedCell[] {
  const lines = options.lines ?? RELEASE_LINES;
  const scenarios = SCENARIOS.filter(({ name }) => options.scenarios?.includes(name) ?? true);
  return lines.flatMap((line) =>
    scenarios.flatMap((scenario) =>
      sides.filter((side) => scenario[side] !== undefined).map((side) => ({ scenario, side, line })),
    ),
  );
}

async function play({ scenario, side }: PlannedCell, deps: MatrixDeps, scene: SceneDeps): Promise<CellResult> {
  if (side === 'handler' && scenario.handler !== undefined && deps.handler !== undefined) {
    await using stage = new HandlerScene(scene, deps.handler);
    return await scenario.handler(stage);
  }
  if (side === 'launcher' && scenario.launcher !== undefined && deps.launcher !== undefined) {
    await using stage = new LauncherScene(scene, deps.launcher);
    return await scenario.launcher(stage);
  }
  return { kind: 'fail', reason: `there is no ${side} to test` };
}

function resultOf(caught: unknown): CellResult {
  if (caught instanceof PartMissing) return { kind: 'notBuilt', missingPart: caught.message };
  return { kind: 'fail', reason: caught instanceof Error ? caught.message : String(caught) };
}

/** Runs one cell; whatever goes wrong is its result. */
export async function runCell(planned: PlannedCell, deps: MatrixDeps, signal?: AbortSignal): Promise<Cell> {
  const startedAtMs = performance.now();
  const trace: string[] = [];
  const note = (line: string): void => {
    const atMs = (performance.now() - startedAtMs).toFixed(0).padStart(5);
    if (trace.length < MAX_TRACE_LINES) trace.push(`${atMs} ms ${line}`);
  };
  const limit = AbortSignal.timeout(CELL_LIMIT_MS);
  const pair = pairOf(planned);
  const scene = {
    ...{ pair, line: planned.line, emulations: deps.emulations, note },
    signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
  };
  let result: CellResult;
  try {
    result = await play(planned, deps, scene);
  } catch (caught) {
    result = resultOf(caught);
  }
  return { scenario: planned.scenario.name, pair, result, durationMs: performance.now() - startedAtMs, trace };
}

/** Runs a matrix, a few cells at a time. @returns the cells in the order of the plan. */
export async function runMatrix(deps: MatrixDeps, options: MatrixOptions = {}): Promise<readonly Cell[]> {
  const sides = (['handler', 'launcher'] as const).filter((side) => deps[side] !== undefined);
  const plan = planCells(sides, options);
  const cells = new Array<Cell | undefined>(plan.length).fill(undefined);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let i = next++; i < plan.length; i = next++) {
      const planned = plan[i];
      if (planned === undefined || options.signal?.aborted === true) return;
      const cell = await runCell(planned, deps, options.signal);
      cells[i] = cell;
      options.onCell?.(cell);
      await nextTurn();
    }
  };
  await Promise.all(Array.from({ length: options.concurrency ?? DEFAULT_CONCURRENCY }, work));
  return cells.filter((cell) => cell !== undefined);
}
