import { STYLE } from './html-style.ts';
import type { Timeline, TimelineEntry } from './read.ts';
import { timelineMark } from './marks.ts';
import { endOf, scaleOf } from './scale.ts';
import type { Scale } from './scale.ts';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(value: string): string {
  return value.replace(/[&<>"']/g, (c) => escapes[c] ?? c);
}

function axis(scale: Scale): string {
  const marks = scale.ticksMs.map((ms) => {
    const label = Math.abs(ms) >= 1_000 ? `${String(Number((ms / 1_000).toFixed(1)))} s` : `${ms.toFixed(0)} ms`;
    const edge = scale.at(ms) > 90 ? ' class="last"' : '';
    return `<i style="left:${scale.at(ms).toFixed(2)}%"${edge}><b>${label}</b></i>`;
  });
  const coarse = scale.breakMs === undefined ? '' : `<u style="left:${scale.at(scale.breakMs).toFixed(2)}%"></u>`;
  return `<div class="axis" aria-hidden="true">${coarse}${marks.join('')}</div>`;
}

function seconds(ms: number): string {
  return `${ms < 0 ? '−' : '+'}${(Math.abs(ms) / 1_000).toFixed(3)} s`;
}

function row(entry: TimelineEntry, scale: Scale): string {
  const left = scale.at(entry.atMs).toFixed(3);
  const width = (scale.at(endOf(entry)) - scale.at(entry.atMs)).toFixed(3);
  const failed = entry.failed === true ? ' failed' : '';
  const took = entry.durationMs === undefined ? '' : `<span class="took">${entry.durationMs.toFixed(1)} ms</span>`;
  const bar =
    entry.durationMs === undefined
      ? `<span class="moment" style="left:${left}%"></span>`
      : `<span class="bar${failed}" style="left:${left}%;width:max(3px,${width}%)"></span>`;
  return (
    `<li><span class="at">${seconds(entry.atMs)}</span>` +
    `<span class="what">${escapeHtml(entry.what)}${entry.failed === true ? ' — failed' : ''} ${took}` +
    `<span class="where">${escapeHtml(entry.where)}</span></span>` +
    `<span class="track">${bar}</span></li>`
  );
}

function processSection(who: string, entries: readonly TimelineEntry[], scale: Scale): string {
  const rows = entries.map((e) => row(e, scale)).join('\n');
  return `<section class="who-${escapeHtml(who)}"><h2>${escapeHtml(who)}</h2>${axis(scale)}<ol>\n${rows}\n</ol></section>`;
}

function summary(timeline: Timeline): string {
  const parts = (['running', 'agentConnected'] as const).map((mark) => {
    const ms = timelineMark(timeline, mark);
    const label = mark === 'running' ? 'hand-over to Running' : 'hand-over to AgentConnected';
    return `<div><dt>${label}</dt><dd>${ms === undefined ? 'not reached' : `${ms.toFixed(0)} ms`}</dd></div>`;
  });
  return `<dl>${parts.join('')}</dl>`;
}

/**
 * Draws the timeline as one self-contained HTML page: a group of rows per process, a bar per timed step, a dot per moment.
 * It loads nothing, needs no script, and everything a bar says stands beside it in words.
 */
export function renderTimelineHtml(timeline: Timeline): string {
  const scale = scaleOf(timeline);
  const processes = [...new Set(timeline.entries.map((e) => e.who))];
  const sections = processes.map((who) =>
    processSection(
      who,
      timeline.entries.filter((e) => e.who === who),
      scale,
    ),
  );
  const title = `${timeline.namespace}/${timeline.name}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Timeline of ${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${escapeHtml(title)}</h1>
<p>Seconds count from the hand-over at ${escapeHtml(timeline.handoverAt)}. VMI ${escapeHtml(timeline.uid)}.${scale.breakMs === undefined ? '' : ' The shaded end of the scale is drawn coarser.'}</p>
${summary(timeline)}
</header>
<main>
${sections.join('\n')}
</main>
</body>
</html>
`;
}
