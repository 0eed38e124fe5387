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
