import { appendFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Cell } from '../cell.ts';
import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { CompatError } from '../errors.ts';
import { commandHandler } from '../matrix/command-handler.ts';
import { commandLauncher } from '../matrix/command-launcher.ts';
import { startOurHandler } from '../matrix/our-handler.ts';
import { startOurLauncher } from '../matrix/our-launcher.ts';
import { runMatrix } from '../matrix/run-matrix.ts';
import { countCells, renderCounts } from '../report/counts.ts';
import { renderHtml } from '../report/html.ts';
import { renderJsonReport } from '../report/json.ts';
import type { RunFacts } from '../report/json.ts';
import { renderJunit } from '../report/junit.ts';
import { renderCellLine } from '../report/words.ts';
import { SCENARIOS } from '../scenarios/scenarios.ts';
import { parseLines } from './lines-option.ts';
import type { CompatProcess } from './process.ts';

const OPTIONS = {
  'new-handler': { type: 'string' },
  'new-launcher': { type: 'string' },
  only: { type: 'string' },
  releases: { type: 'string' },
  scenarios: { type: 'string' },
  concurrency: { type: 'string' },
  junit: { type: 'string' },
  json: { type: 'string' },
  html: { type: 'string' },
  quiet: { type: 'boolean' },
} as const;

const OURS = 'virtwire';

interface ReportFiles {
  readonly junit?: string | undefined;
  readonly json?: string | undefined;
  readonly html?: string | undefined;
}

/** Files of reports, once it is sure that they can be written: the matrix takes minutes. */
function reportFiles({ junit, json, html }: ReportFiles): ReportFiles {
  for (const file of [junit, json, html]) {
    if (file === undefined) continue;
    try {
      appendFileSync(file, '');
    } catch (caught) {
      throw new CompatError('BadOption', `${file} cannot be written: ${String(caught)}`, { cause: caught });
    }
  }
  return { junit, json, html };
}

function writeReports(cells: readonly Cell[], facts: RunFacts, files: ReportFiles): void {
  if (files.junit !== undefined) writeFileSync(files.junit, renderJunit(cells));
  if (files.json !== undefined) writeFileSync(files.json, renderJsonReport(cells, facts));
  if (files.html !== undefined) writeFileSync(files.html, renderHtml(cells, facts, SCENARIOS));
}

function parseScenarios(text: string | undefined): readonly string[] | undefined {
  const names = text?.split(',').map((name) => name.trim());
  const unknown = names?.find((name) => !SCENARIOS.some((scenario) => scenario.name === name));
  if (unknown === undefined) return names;
  const known = SCENARIOS.map(({ name }) => name).join(', ');
  throw new CompatError('BadOption', `unknown scenario ${unknown}: one of ${known}`);
}

function parseConcurrency(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const cells = Number(text);
  if (Number.isInteger(cells) && cells > 0 && cells <= 64) return cells;
  throw new CompatError('BadOption', `--concurrency ${text} is not a number from 1 to 64`);
}

function parseOnly(text: string | undefined): 'handler' | 'launcher' | undefined {
  if (text === undefined || text === 'handler' || text === 'launcher') return text;
  throw new CompatError('BadOption', `--only ${text}: handler or launcher`);
}

/** Runs the matrix. @returns 1 when a cell failed. */
export async function matrixCommand(argv: readonly string[], io: CompatProcess): Promise<number> {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS, strict: true });
  const { 'new-handler': newHandler, 'new-launcher': newLauncher } = values;
  const only = parseOnly(values.only);
  const lines = parseLines(values.releases);
  const scenarios = parseScenarios(values.scenarios);
  const concurrency = parseConcurrency(values.concurrency);
  if (process.getuid?.() !== 0) {
    throw new CompatError('BadOption', 'the matrix needs root: its nodes give files to the users of their VMs');
  }
  const files = reportFiles(values);
  const startedAtMs = Date.now();
  const sides = (['handler', 'launcher'] as const).filter((side) => only === undefined || only === side);
  const cells = await runMatrix(
    {
      emulations: { startLauncher: startEmulatedLauncher, startHandler: startEmulatedHandler },
      ...(sides.includes('handler')
        ? { handler: newHandler === undefined ? startOurHandler : commandHandler(newHandler) }
        : {}),
      ...(sides.includes('launcher')
        ? { launcher: newLauncher === undefined ? startOurLauncher : commandLauncher(newLauncher) }
        : {}),
    },
    {
      ...(lines === undefined ? {} : { lines }),
      ...(scenarios === undefined ? {} : { scenarios }),
      ...(concurrency === undefined ? {} : { concurrency }),
      onCell: (cell) => {
        if (values.quiet !== true || cell.result.kind === 'fail') io.line(renderCellLine(cell));
      },
    },
  );
  const named = { handler: newHandler ?? OURS, launcher: newLauncher ?? OURS };
  const facts: RunFacts = {
    startedAt: `${new Date(startedAtMs).toISOString().slice(0, 19)}Z`,
    durationMs: Date.now() - startedAtMs,
    subjects: Object.fromEntries(sides.map((side) => [side, named[side]])),
  };
  if (cells.length === 0) throw new CompatError('BadOption', 'no scenario of these is for that side: nothing was run');
  writeReports(cells, facts, files);
  const counts = countCells(cells);
  io.line(renderCounts(counts));
  return counts.failed === 0 ? 0 : 1;
}
