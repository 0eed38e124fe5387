import type { Cell, SideUnderTest } from '../cell.ts';
import type { ReleaseLine } from '../release-line.ts';
import { RELEASE_LINES } from '../release-line.ts';
import { countCells } from './counts.ts';
import type { Counts } from './counts.ts';
import { escapeText } from './escape.ts';
import { STYLE } from './html-style.ts';
import type { RunFacts } from './json.ts';
import { pairName, reasonOf, VERDICTS } from './words.ts';

/** Name and title of a row's scenario. */
export interface ScenarioName {
  readonly name: string;
  readonly title: string;
}

type Kind = Cell['result']['kind'];

const DIRECTIONS: readonly { readonly side: SideUnderTest; readonly title: string; readonly peer: string }[] = [
  { side: 'handler', title: 'New handler with launchers of older releases', peer: 'launcher' },
  { side: 'launcher', title: 'New launcher with handlers of older releases', peer: 'handler' },
];

const EXPLANATIONS: Readonly<Record<Kind, string>> = {
  pass: 'as between peers of one release',
  difference: 'known and right: click for the reason',
  notBuilt: 'our side lacks the part: click for its name',
  fail: 'broken: click for the reason',
};

const KINDS: readonly Kind[] = ['pass', 'difference', 'notBuilt', 'fail'];
const verdictText = (kind: Kind): string => `${VERDICTS[kind].sign} ${VERDICTS[kind].word}`;

function peerOf(cell: Cell): ReleaseLine | undefined {
  const { handler, launcher } = cell.pair;
  const peer = handler === 'new' ? launcher : handler;
  return peer === 'new' ? undefined : peer;
}

const sideOf = ({ pair }: Cell): SideUnderTest => (pair.handler === 'new' ? 'handler' : 'launcher');

function renderCell(cell: Cell | undefined, peer: string): string {
  const label = escapeText(peer);
  if (cell === undefined) return `<td class="none" data-label="${label}"><span>–</span></td>`;
  const { kind } = cell.result;
  const reason = reasonOf(cell.result);
  const text = verdictText(kind);
  if (reason === undefined) return `<td class="${kind}" data-label="${label}"><span>${text}</span></td>`;
  const trace = kind === 'fail' ? `<pre>${escapeText(cell.trace.join('\n'))}</pre>` : '';
  const details = `<details><summary>${text}</summary><p class="reason">${escapeText(reason)}</p>${trace}</details>`;
  return `<td class="${kind}" data-label="${label}">${details}</td>`;
}

/** Scenarios down, releases across: their names are short, so that all fit on a screen. */
function renderTable(cells: readonly Cell[], peer: string, scenarios: readonly ScenarioName[]): string {
  const shown = scenarios.filter(({ name }) => cells.some(({ scenario }) => scenario === name));
  const lines = RELEASE_LINES.filter((line) => cells.some((cell) => peerOf(cell) === line));
  const head = lines.map((line) => `<th scope="col">${line}</th>`).join('');
  const rows = shown.map(({ name, title }) => {
    const find = (line: ReleaseLine): Cell | undefined =>
      cells.find((cell) => cell.scenario === name && peerOf(cell) === line);
    const tds = lines.map((line) => renderCell(find(line), `${peer} ${line}`)).join('');
    return `<tr><th scope="row">${escapeText(title)}</th>${tds}</tr>`;
  });
  return `<div class="scroll"><table class="matrix"><thead><tr><th scope="col">with the ${peer} of</th>${head}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>`;
}

const countOf = (counts: Counts, kind: Kind): number =>
  ({ pass: counts.passed, difference: counts.declared, notBuilt: counts.notBuilt, fail: counts.failed })[kind];

/** All four results with their numbers; those that do not occur step back. */
function renderCountList(counts: Counts): string {
  const items = KINDS.map((kind) => {
    const count = countOf(counts, kind);
    return `<li class="${count === 0 ? 'zero' : kind}">${VERDICTS[kind].sign} ${count} ${VERDICTS[kind].word}</li>`;
  });
  return `<ul class="counts">${items.join('')}</ul>`;
}

/** Who gets along with whom, all scenarios in one: handlers down, launchers across. */
function renderOverview(cells: readonly Cell[]): string {
  const lines = RELEASE_LINES.filter((line) => cells.some((cell) => peerOf(cell) === line));
  const parties = ['new', ...lines] as const;
  const head = parties.map((party) => `<th scope="col">${party}</th>`).join('');
  const rows = parties.map((handler) => {
    const tds = parties.map((launcher) => {
      const pair = cells.filter((cell) => cell.pair.handler === handler && cell.pair.launcher === launcher);
      if (pair.length === 0) return '<td class="none">·</td>';
      const counts = countCells(pair);
      const label = escapeText(pairName({ handler, launcher }));
      return `<td class="${counts.failed > 0 ? 'fail' : 'pair'}" data-label="${label}">${renderCountList(counts)}</td>`;
    });
    return `<tr><th scope="row">${handler}</th>${tds.join('')}</tr>`;
  });
  return `<h2>Overview: handlers down, launchers across</h2>
<div class="scroll"><table class="overview"><thead><tr><th>handler \\ launcher</th>${head}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>`;
}

function renderHeader(cells: readonly Cell[], facts: RunFacts): string {
  const counts = countCells(cells);
  const broken = counts.failed === 1 ? '1 cell is broken.' : `${counts.failed} cells are broken.`;
  const verdict = counts.failed === 0 ? 'Nothing is broken.' : broken;
  const subjects = Object.entries(facts.subjects).map(([side, name]) => `${side}: ${name}`);
  const legend = KINDS.map(
    (kind) =>
      `<li class="${kind}">${VERDICTS[kind].sign} ${countOf(counts, kind)} ${VERDICTS[kind].word}: ${EXPLANATIONS[kind]}</li>`,
  ).join('');
  return `<h1>KubeVirt compatibility matrix</h1>
<p><strong>${verdict}</strong> ${cells.length} cells, a scenario and a pair each.</p>
<p>“new” is ${escapeText(subjects.join('; '))}. Run at ${escapeText(facts.startedAt)}, ${(facts.durationMs / 1_000).toFixed(0)} s.</p>
<ul class="legend">${legend}</ul>`;
}

/** The cells as one HTML file that needs nothing else: no script, no font, no picture from elsewhere. */
export function renderHtml(cells: readonly Cell[], facts: RunFacts, scenarios: readonly ScenarioName[]): string {
  const tables = DIRECTIONS.flatMap(({ side, title, peer }) => {
    const members = cells.filter((cell) => sideOf(cell) === side);
    return members.length === 0 ? [] : [`<h2>${title}</h2>`, renderTable(members, peer, scenarios)];
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>KubeVirt compatibility matrix</title><style>${STYLE}</style></head>
<body>${renderHeader(cells, facts)}
${renderOverview(cells)}
${tables.join('\n')}
</body></html>
`;
}
