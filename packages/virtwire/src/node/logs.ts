import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { LogFile } from '@virtwire/telemetry';
import type { VmiKey } from '../controller/store.ts';
import type { NodeLayout } from '../state/layout.ts';

/** A log that grows past this is emptied. Of each, the one before is kept too. */
const MAX_LOG_BYTES = 16 << 20;
const LOOK_MS = 30_000;

/** Log of a VM's launcher. */
export function launcherLogOf(layout: NodeLayout, key: VmiKey): string {
  return join(layout.logsDir, `${key.replace('/', '_')}.launcher.log`);
}

/** Moves a log aside when it is larger than this; the one that was aside goes. */
function rotateLog(file: string, maxBytes = MAX_LOG_BYTES / 4): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > maxBytes) renameSync(file, `${file}.1`);
}

/** Opens a log for a child's output; the caller closes the descriptor. */
export function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
  rotateLog(file);
  return openSync(file, 'a', 0o640);
}

/** Keeps the logs of running processes bounded: they append, so cutting a file to nothing is safe. */
export function boundLogs(layout: NodeLayout): Disposable {
  const look = (): void => {
    if (!existsSync(layout.logsDir)) return;
    for (const name of readdirSync(layout.logsDir)) {
      const file = join(layout.logsDir, name);
      if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) truncateSync(file, 0);
    }
  };
  const timer = setInterval(look, LOOK_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
}

/** The logs that a VM's timeline is read from. */
export function timelineFiles(layout: NodeLayout, key: VmiKey): LogFile[] {
  const handler = [`${layout.handlerLog}.1`, layout.handlerLog].flatMap(linesOf);
  return [{ lines: handler }, { lines: linesOf(launcherLogOf(layout, key)), isOfVm: true }];
}

/** Begins a launcher's log: that of the VM's start before is kept aside. */
export function beginLog(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
  rotateLog(file, 0);
  closeSync(openSync(file, 'a', 0o640));
}
