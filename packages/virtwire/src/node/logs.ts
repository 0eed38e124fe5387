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
import { join } from 'node:path';
import type { LogFile } from '@virtwire/telemetry';
import type { VmiKey } from '../controller/store.ts';
import type { NodeLayout } from '../state/layout.ts';

/** A log that grows past this is cut: its older half goes. Two files are kept per writer. */
const MAX_LOG_BYTES = 16 << 20;
const LOOK_MS = 30_000;

/** Log of a VM's launcher. */
export function launcherLogOf(layout: NodeLayout, key: VmiKey): string {
  return join(layout.logsDir, `${key.replace('/', '_')}.launcher.log`);
}

/** Moves a log aside when it is large, so that a start finds room; the one before that goes. */
function rotateLog(file: string, maxBytes = MAX_LOG_BYTES / 4): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > maxBytes) renameSync(file, `${file}.1`);
}

/** Opens a log for a child's output; the caller closes the descriptor. */
export function openLog(file: string): number {
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o750 });
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
  return [`${file}.1`, file].flatMap((path) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []));
}

/** The logs that a VM's timeline is read from. */
export function timelineFiles(layout: NodeLayout, key: VmiKey): LogFile[] {
  return [{ lines: linesOf(layout.handlerLog) }, { lines: linesOf(launcherLogOf(layout, key)), isOfVm: true }];
}

/** Makes an empty file if there is none. */
export function touch(file: string): void {
  closeSync(openLog(file));
}
