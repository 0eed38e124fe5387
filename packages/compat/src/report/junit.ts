import type { Cell } from '../cell.ts';
import { countCells } from './counts.ts';
import { escapeText } from './escape.ts';
import { pairName, reasonOf } from './words.ts';

const seconds = (ms: number): string => (ms / 1_000).toFixed(3);

function renderBody({ result, trace }: Cell): string {
  const reason = escapeText(reasonOf(result) ?? '');
  if (result.kind === 'fail') return `<failure message="${reason}">${escapeText(trace.join('\n'))}</failure>`;
  if (result.kind === 'notBuilt') return `<skipped message="not built: ${reason}"/>`;
  return result.kind === 'difference' ? `<system-out>declared difference: ${reason}</system-out>` : '';
}

function renderCase(cell: Cell): string {
  const classname = `compat.${escapeText(pairName(cell.pair))}`;
  const head = `<testcase classname="${classname}" name="${escapeText(cell.scenario)}" time="${seconds(cell.durationMs)}"`;
  const body = renderBody(cell);
  return body === '' ? `    ${head}/>` : `    ${head}>${body}</testcase>`;
}

function attributes(cells: readonly Cell[], isSuite: boolean): string {
  const { notBuilt, failed } = countCells(cells);
  const total = cells.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const common = `tests="${cells.length}" failures="${failed}" errors="0" time="${seconds(total)}"`;
  // The schema that CI servers check against knows skipped tests of a suite alone.
  return isSuite ? `${common} skipped="${notBuilt}"` : common;
}

/** The cells as JUnit XML: a suite per pair, a declared difference as a pass that says so, not built as skipped. */
export function renderJunit(cells: readonly Cell[]): string {
  const suites = Map.groupBy(cells, ({ pair }) => pairName(pair));
  const body = [...suites].map(([name, members]) =>
    [
      `  <testsuite name="${escapeText(name)}" ${attributes(members, true)}>`,
      ...members.map(renderCase),
      '  </testsuite>',
    ].join('\n'),
  );
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="virtwire compat" ${attributes(cells, false)}>`,
    ...body,
    '</testsuites>\n',
  ].join('\n');
}
