import fc from 'fast-check';
import { SaxesParser } from 'saxes';
import { expect, test } from 'vitest';
import type { Cell, CellResult } from '../cell.ts';
import { countCells, renderCounts } from './counts.ts';
import { renderHtml } from './html.ts';
import { renderJsonReport } from './json.ts';
import { renderJunit } from './junit.ts';
import { renderCellLine } from './words.ts';

const facts = { startedAt: '2026-03-01T12:00:00Z', durationMs: 1_500, subjects: { handler: 'virtwire' } };
const scenarios = [{ name: 'pause', title: 'pause and unpause' }];

function cell(result: CellResult, trace: readonly string[] = []): Cell {
  return { scenario: 'pause', pair: { handler: 'new', launcher: 'v1.3' }, result, durationMs: 12.3, trace };
}

const cells = [
  cell({ kind: 'pass' }),
  cell({ kind: 'difference', reason: 'no <RPC>' }),
  cell({ kind: 'notBuilt', missingPart: 'live migration' }),
  cell({ kind: 'fail', reason: 'a "quote" & more' }, ['1 ms one', '2 ms <two>']),
];

function parseXml(xml: string): string[] {
  const seen: string[] = [];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes }) => seen.push(`${name} ${attributes['message'] ?? ''}`.trim()));
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(xml).close();
  return seen;
}

test('the last line counts every result', () => {
  expect(renderCounts(countCells(cells))).toBe('1 passed, 1 declared, 1 not built, 1 failed');
});

test.each([1, 2])('the page counts %i broken cells in grammar', (count) => {
  const broken = Array.from({ length: count }, () => cell({ kind: 'fail', reason: 'x' }));
  const sentence = count === 1 ? '1 cell is broken.' : '2 cells are broken.';
  expect(renderHtml(broken, facts, scenarios)).toContain(`<strong>${sentence}</strong>`);
});

test('JUnit: fails carry reason and trace, not built is skipped, a difference passes and says so', () => {
  const xml = renderJunit(cells);
  expect(parseXml(xml)).toEqual([
    ...['testsuites', 'testsuite', 'testcase', 'testcase', 'system-out', 'testcase'],
    ...['skipped not built: missing: live migration', 'testcase', 'failure a "quote" & more'],
  ]);
  expect(xml).toContain(
    '<testsuite name="new handler, launcher v1.3" tests="4" failures="1" errors="0" time="0.049" skipped="1">',
  );
});

/** What may stand where, as CI servers have it in their schema: attributes, those that must be there, children. */
const JUNIT: Readonly<Record<string, readonly [attributes: string, required: string, children: string]>> = {
  testsuites: ['name time tests failures errors', '', 'testsuite'],
  testsuite: [
    'name tests failures errors time skipped timestamp hostname id package',
    'name tests failures errors',
    'testsuite properties testcase system-out system-err',
  ],
  testcase: ['name time classname', 'name', 'skipped error failure system-out system-err'],
  skipped: ['type message', '', ''],
  failure: ['type message', '', ''],
  'system-out': ['', '', ''],
};

test('JUnit keeps to the schema that CI servers check against', () => {
  const open: string[] = [];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes, isSelfClosing }) => {
    const [known = '', required = ''] = JUNIT[name] ?? [];
    for (const key of Object.keys(attributes)) expect(known.split(' '), `${name} ${key}`).toContain(key);
    for (const key of required.split(' ').filter(Boolean)) expect(attributes, name).toHaveProperty([key]);
    if ('time' in attributes) expect(attributes['time']).toMatch(/^[0-9]{1,3}\.[0-9]+$/);
    const parent = open.at(-1);
    expect(parent === undefined ? 'testsuites' : JUNIT[parent]?.[2].split(' '), name).toContain(name);
    if (!isSelfClosing) open.push(name);
  });
  parser.on('closetag', ({ name, isSelfClosing }) => {
    if (!isSelfClosing) expect(open.pop()).toBe(name);
  });
  parser.write(renderJunit(cells)).close();
  expect(open).toEqual([]);
});

test('JUnit and HTML stay well-formed whatever a peer says', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (reason) => {
      const bad = [cell({ kind: 'fail', reason }, [reason])];
      parseXml(renderJunit(bad));
      expect(renderHtml(bad, facts, scenarios)).not.toMatch(/<script/i);
    }),
  );
});

test('JSON has the counts, and traces of failed cells alone', () => {
  const report = JSON.parse(renderJsonReport(cells, facts)) as { counts: unknown; cells: { trace?: string[] }[] };
  expect(report.counts).toEqual({ passed: 1, declared: 1, notBuilt: 1, failed: 1 });
  expect(report.cells.map(({ trace }) => trace?.length)).toEqual([undefined, undefined, undefined, 2]);
});

test('HTML is one file with word and sign in every cell and the reason behind a click', () => {
  const html = renderHtml([cell({ kind: 'difference', reason: 'no <RPC>' })], facts, scenarios);
  expect(html).toContain('<details><summary>≠ differs</summary><p class="reason">no &lt;RPC&gt;</p></details>');
  expect(html).not.toMatch(/(src|href)=|@import|url\(/);
});

test('lines for terminals name pair, scenario and reason', () => {
  expect(renderCellLine(cell({ kind: 'fail', reason: 'gone' }))).toMatch(
    /^✗ FAIL {6}new handler, launcher v1\.3 +pause +12 ms {2}gone$/,
  );
});
