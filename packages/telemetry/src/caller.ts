const FRAME = /([^/\\()\s]+:\d+:\d+)\)?$/;

/**
 * The place that called `callee`, as `file.ts:line:column`.
 *
 * Only one frame is captured, so that a log line costs microseconds. Type stripping keeps line numbers, so the name is that
 * of the source file; in a bundle it is the bundle's.
 */
export function callerOf(callee: (...args: never[]) => unknown): string {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 1;
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, callee);
  const stack = holder.stack ?? '';
  Error.stackTraceLimit = limit;
  const frame = FRAME.exec(stack.slice(stack.lastIndexOf('\n') + 1));
  return frame?.[1] ?? 'unknown:0:0';
}
