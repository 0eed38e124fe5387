/** An expression that cannot be used, or that has no result. */
export class CelError extends Error {}

/** How long a text is in CEL. */
export function codePoints(text: string): number {
  let size = 0;
  for (let at = 0; at < text.length; size++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return size;
}

/**
 * A mistake in an expression, shown with its line as cel-go shows it.
 *
 * @param at place in the text; -1 for the whole.
 * @source cel-go common/error.go
 */
export function reportAt(text: string, at: number, message: string): CelError {
  if (at < 0) return new CelError(`ERROR: <input>:-1:0: ${message}`);
  const before = text.slice(0, at);
  const start = before.lastIndexOf('\n') + 1;
  const end = text.indexOf('\n', at);
  const line = text.slice(start, end === -1 ? undefined : end).replaceAll('\t', ' ');
  const column = codePoints(before.slice(start));
  const lineNumber = before.split('\n').length;
  return new CelError(`ERROR: <input>:${lineNumber}:${column + 1}: ${message}\n | ${line}\n | ${'.'.repeat(column)}^`);
}
