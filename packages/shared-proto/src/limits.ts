/**
 * The largest message that we send: peers written in Go, and grpc-js by default, take no more.
 *
 * @source grpc-go's default receive limit
 */
export const MAX_SEND_BYTES = 4_194_304;

/** The largest message that we take (FM-1.7, FM-13.7). */
export const MAX_RECEIVE_BYTES = 64 * 1_048_576;

/** Calls that one connection may have under way (FM-13.7). */
export const MAX_CONCURRENT_CALLS = 1_000;

/** grpc-go's words for a message over the limit. */
export function tooLargeText(bytes: number): string {
  return `trying to send message larger than max (${bytes} vs. ${MAX_SEND_BYTES})`;
}

/** Characters of a status text that are sent: it travels in a header block, each character as up to nine bytes. */
const MAX_STATUS_CHARS = 4_096;

/** A status text that fits into a header block; one that does not would end the connection, and all other calls on it. */
export function shortenStatusText(text: string): string {
  if (text.length <= MAX_STATUS_CHARS) return text.toWellFormed();
  return `${text.slice(0, MAX_STATUS_CHARS).toWellFormed()}... (${text.length} characters)`;
}
