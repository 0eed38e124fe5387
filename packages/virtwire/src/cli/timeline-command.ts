import { writeFileSync } from 'node:fs';
import { readTimeline, renderTimelineHtml, renderTimelineTable } from '@virtwire/telemetry';
import type { Timeline } from '@virtwire/telemetry';
import type { VmiKey } from '../controller/store.ts';
import { VirtwireError } from '../errors.ts';
import { timelineFiles } from '../node/logs.ts';
import type { NodeLayout } from '../state/layout.ts';
import { EXIT } from './exit-codes.ts';
import type { LookRequest } from './list-commands.ts';
import { parseTarget } from './target.ts';

/**
 * The timeline of a VM's last start, out of the logs of handler and launcher.
 *
 * @throws {VirtwireError} `NotFound` when the logs hold no start of it.
 */
export function timelineOf(layout: NodeLayout, key: VmiKey): Timeline {
  const [namespace = '', name = ''] = key.split('/');
  const timeline = readTimeline(timelineFiles(layout, key), { namespace, name });
  if (timeline !== undefined) return timeline;
  throw new VirtwireError('NotFound', `no start of VM ${key} in the logs of ${layout.logsDir}`);
}

/** Prints the timeline as a table or as JSON, or writes it as a page. */
export function showTimeline(target: string, request: LookRequest & { readonly html: string | undefined }): number {
  const timeline = timelineOf(request.layout, parseTarget(target));
  if (request.html !== undefined) {
    try {
      writeFileSync(request.html, renderTimelineHtml(timeline));
    } catch (caught) {
      throw VirtwireError.from(caught, 'BadInput', `--html ${request.html} cannot be written`);
    }
    request.output.line(`timeline written to ${request.html}`);
  } else if (request.json) request.output.line(JSON.stringify(timeline, null, 2));
  else request.output.line(renderTimelineTable(timeline).trimEnd());
  return EXIT.ok;
}
