import { isConditionTrue } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { VmEvent } from '../state/event-files.ts';
import type { Output } from './output.ts';

/** Writes one line per step, with the time since the start. */
export interface Progress {
  step(text: string): void;
  /** Tells what changed since the VMI that it saw last. */
  see(vmi: Vmi | undefined): void;
  /** Tells warnings about the VM that it has not told yet; the same one again and again is told once. */
  warn(events: readonly VmEvent[]): void;
}

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, '; ');

/** Lines for what changed from one VMI to the next. */
export function describeChange(before: Vmi | undefined, after: Vmi): string[] {
  const lines: string[] = [];
  const [from, to] = [before?.status, after.status];
  if (to?.phase !== undefined && to.phase !== from?.phase && to.phase !== 'Pending' && to.phase !== 'Scheduling') {
    lines.push(to.phase === 'Failed' ? `VM is Failed${to.reason ? `: ${to.reason}` : ''}` : `VM is ${to.phase}`);
  }
  for (const [type, text] of [
    ['AgentConnected', 'guest agent connected'],
    ['Paused', 'VM paused'],
  ] as const) {
    if (isConditionTrue(to?.conditions, type) && !isConditionTrue(from?.conditions, type)) lines.push(text);
  }
  if (isConditionTrue(from?.conditions, 'Paused') && !isConditionTrue(to?.conditions, 'Paused'))
    lines.push('VM goes on');
  const trouble = to?.conditions?.find((c) => c.type === 'Synchronized' && c.status === 'False');
  const known = from?.conditions?.find((c) => c.type === 'Synchronized')?.message;
  if (trouble?.message !== undefined && trouble.message !== known) lines.push(`handler: ${oneLine(trouble.message)}`);
  return lines;
}

/** Progress on a terminal or in a log. */
export function createProgress(output: Output, now: () => number, startedAt: number): Progress {
  let last: Vmi | undefined;
  let warnings = 0;
  let warned: string | undefined;
  const step = (text: string): void => {
    output.line(`+${((now() - startedAt) / 1_000).toFixed(3)} s  ${text}`);
  };
  return {
    step,
    see(vmi) {
      if (vmi === undefined) return;
      for (const line of describeChange(last, vmi)) step(line);
      last = vmi;
    },
    warn(events) {
      const found = events.filter((event) => event.type === 'Warning' && event.uid === last?.metadata.uid);
      for (const { reason, message } of found.slice(warnings)) {
        const text = `${reason}: ${oneLine(message)}`;
        // What is tried again fails with the same words again.
        if (text !== warned) step(text);
        warned = text;
      }
      warnings = Math.max(warnings, found.length);
    },
  };
}
