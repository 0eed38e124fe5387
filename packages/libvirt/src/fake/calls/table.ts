import { agentCalls } from './agent.ts';
import { connectCalls } from './connect.ts';
import type { CallContext } from './context.ts';
import { deviceCalls } from './device.ts';
import { infoCalls } from './info.ts';
import { jobCalls } from './job.ts';
import { lifecycleCalls } from './lifecycle.ts';
import { streamCalls } from './stream.ts';

/** A handler without its types, as the session calls it. */
export type AnyHandler = (args: unknown, context: CallContext) => unknown;

const ALL: Readonly<Record<string, unknown>> = {
  ...connectCalls,
  ...lifecycleCalls,
  ...infoCalls,
  ...deviceCalls,
  ...agentCalls,
  ...jobCalls,
  ...streamCalls,
};

/** The handler of a procedure, undefined when the fake does not know it. */
export function handlerOf(procedure: string): AnyHandler | undefined {
  // CallHandlers has checked each handler against its procedure.
  return ALL[procedure] as AnyHandler | undefined;
}
