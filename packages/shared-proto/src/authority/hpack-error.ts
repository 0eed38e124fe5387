/** A header block that breaks HPACK's rules. Internal: the peer of such a block is left to the HTTP/2 server. */
export class HpackError extends Error {
  override readonly name = 'HpackError';
}
