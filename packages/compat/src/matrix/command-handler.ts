import { setTimeout as sleep } from 'node:timers/promises';
import { CompatError } from '../errors.ts';
import { startCommand } from './command.ts';
import type { CommandProcess } from './command.ts';
import { eventually } from './eventually.ts';
import { HANDLER_VARIABLE } from './handler-lines.ts';
import type { FromHandler, HandlerSettings, ToHandler } from './handler-lines.ts';
import type { HandlerStart, ReportedEvent, RunningHandler, StartHandler } from './subjects.ts';

const READY_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 10_000;

async function applyUpdate(
  { store }: HandlerStart,
  { update, vmi }: Extract<FromHandler, { update: number }>,
): Promise<ToHandler> {
  try {
    return { answer: update, vmi: await store.update(vmi) };
  } catch (error) {
    const { code = 'Internal', message = String(error) } = error as { code?: string; message?: string };
    return { answer: update, code, message };
  }
}

async function end(running: CommandProcess): Promise<void> {
  running.child.kill('SIGTERM');
  await Promise.race([running.ended, sleep(STOP_LIMIT_MS, undefined, { ref: false })]);
  running.child.kill('SIGKILL');
  await running.ended;
}

/** A handler under test that is a command of its own; the cluster's side travels as JSON lines over its stdin/stdout. */
export function commandHandler(command: string): StartHandler {
  return async (start: HandlerStart): Promise<RunningHandler> => {
    const { dirs, nodeName, resyncMs, store, log } = start;
    const events: ReportedEvent[] = [];
    let isReady = false;
    let missingParts: readonly string[] = [];
    const take = (line: string): void => {
      const said = parseLine(line);
      if (said === undefined) return log(line);
      if ('ready' in said) {
        isReady = true;
        missingParts = said.missingParts ?? [];
      } else if ('event' in said) events.push(said.event);
      else void applyUpdate(start, said).then(tell);
    };
    const { podsDir, shareDir, privateDir, podRoots } = dirs;
    const settings: HandlerSettings = { podsDir, shareDir, privateDir, podRoots, nodeName, resyncMs };
    const env = { [HANDLER_VARIABLE]: JSON.stringify(settings) };
    const running = startCommand(command, [], { env, onLine: take, log });
    function tell(line: ToHandler): void {
      if (!running.hasEnded) running.child.stdin.write(`${JSON.stringify(line)}\n`);
    }
    for (const vmi of store.list()) tell({ put: vmi });
    const watch = store.watch((key) => {
      const vmi = store.get(key);
      tell(vmi === undefined ? { remove: key } : { put: vmi });
    });
    const stop = async (): Promise<void> => {
      watch[Symbol.dispose]();
      await end(running);
    };
    try {
      await eventually('readiness of the handler', () => running.hasEnded || isReady, { limitMs: READY_LIMIT_MS });
      if (running.hasEnded) throw new CompatError('ConnectFailed', `the handler is not ready, ${running.describe()}`);
    } catch (error) {
      await stop();
      throw error;
    }
    return { events, missingParts, stop };
  };
}

function parseLine(line: string): FromHandler | undefined {
  try {
    return JSON.parse(line) as FromHandler;
  } catch {
    return undefined;
  }
}
