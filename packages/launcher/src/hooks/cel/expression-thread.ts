import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { LauncherError, textOf } from '../../errors.ts';
import type { PluginExpressions } from './program.ts';

/** One expression to evaluate. */
export interface ExpressionRequest {
  readonly kind: keyof PluginExpressions;
  readonly expression: string;
  readonly domainXml: string;
}

/** What became of it. */
export type ExpressionAnswer = { readonly value: boolean | string } | { readonly failure: string };

/** Evaluates expressions of plugins, one at a time, in a thread of their own. */
export interface ExpressionThread extends AsyncDisposable {
  /** @throws {LauncherError} `HookFailed` */
  condition(expression: string, domainXml: string): Promise<boolean>;
  /** Returns the changed domain. @throws {LauncherError} `HookFailed` */
  mutation(expression: string, domainXml: string): Promise<string>;
}

/** Far more than any expression needs that costs no more than it may. */
const TIMEOUT_MS = 30_000;
/** An expression that wants more ends its thread, not the launcher. */
const MEMORY = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 };
const CONDITION = '@virtwire/source';

/** The thread's program: beside the packed launcher, in the sources, or built. */
const PROGRAMS = ['./cel-worker.mjs', '../../cel-worker-main.ts', '../../cel-worker-main.js'];

/** Creates what evaluates expressions for a VMI; the thread starts with the first one. */
export function createExpressionThread(vmiJson: string, timeoutMs = TIMEOUT_MS): ExpressionThread {
  let current: Worker | undefined;

  function start(): Worker {
    const worker = startWorker(vmiJson);
    // One that ends between two expressions is replaced by the next; nobody else hears of it.
    worker.on('error', () => {
      if (current === worker) current = undefined;
    });
    return worker;
  }

  async function ask(request: ExpressionRequest): Promise<boolean | string> {
    const worker = (current ??= start());
    let answer: ExpressionAnswer;
    try {
      const answered = once(worker, 'message', { signal: AbortSignal.timeout(timeoutMs) });
      worker.postMessage(request);
      [answer] = (await answered) as [ExpressionAnswer];
    } catch (caught) {
      current = undefined;
      await worker.terminate();
      const why =
        caught instanceof Error && caught.name === 'AbortError'
          ? `not done after ${timeoutMs / 1000} s`
          : textOf(caught);
      throw new LauncherError('HookFailed', `evaluating expression: ${why}`, { cause: caught });
    }
    if ('failure' in answer) throw new LauncherError('HookFailed', answer.failure);
    return answer.value;
  }

  return {
    condition: async (expression, domainXml) => (await ask({ kind: 'condition', expression, domainXml })) === true,
    mutation: async (expression, domainXml) => String(await ask({ kind: 'mutation', expression, domainXml })),
    async [Symbol.asyncDispose]() {
      await current?.terminate();
      current = undefined;
    },
  };
}

function startWorker(vmiJson: string): Worker {
  const program = PROGRAMS.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (program === undefined) throw new LauncherError('HookFailed', 'the program that evaluates expressions is missing');
  const isSource = program.pathname.endsWith('.ts');
  return new Worker(program, {
    workerData: vmiJson,
    resourceLimits: MEMORY,
    execArgv: isSource ? ['--conditions', CONDITION, '--no-warnings'] : ['--no-warnings'],
  });
}
