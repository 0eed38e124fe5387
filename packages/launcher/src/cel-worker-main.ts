/** Evaluates the expressions of plugins beside the launcher, which can end this thread whatever an expression does. */
import { parentPort, workerData } from 'node:worker_threads';
import { parseJson } from '@virtwire/vm-model';
import { textOf } from './errors.ts';
import type { ExpressionAnswer, ExpressionRequest } from './hooks/cel/expression-thread.ts';
import { createPluginExpressions } from './hooks/cel/program.ts';

const expressions = createPluginExpressions(parseJson(workerData as string));

function answer({ kind, expression, domainXml }: ExpressionRequest): ExpressionAnswer {
  try {
    return { value: expressions[kind](expression, domainXml) };
  } catch (caught) {
    return { failure: textOf(caught) };
  }
}

parentPort?.on('message', (request: ExpressionRequest) => parentPort?.postMessage(answer(request)));
