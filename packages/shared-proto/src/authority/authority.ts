import type { Header } from './hpack.ts';

/** What every authority that the HTTP/2 server would refuse is replaced by; Go peers since v1.1 send the same. */
const LOCAL_AUTHORITY = 'localhost';

/**
 * The characters that nghttp2 takes in an authority (RFC 3986 without user information). A path has `/`.
 */
const VALID_AUTHORITY = /^[A-Za-z0-9!$%&'()*+,\-.:;=_~[\]]+$/;

/** Says whether the HTTP/2 server takes the authority of a request with these headers. */
export function hasValidAuthority(headers: readonly Header[]): boolean {
  const authorities = headers.filter(isAuthority);
  return authorities.length > 0 && authorities.every((header) => VALID_AUTHORITY.test(header.value));
}

/** Says whether the block opens a request (and is not, say, a block of trailers). */
export function isRequest(headers: readonly Header[]): boolean {
  return headers.some((header) => header.name === ':method');
}

/** Gives a request an authority that the HTTP/2 server takes; everything else stays, order included. */
export function replaceAuthority(headers: readonly Header[]): readonly Header[] {
  const replaced = headers.map((header) =>
    isAuthority(header) && !VALID_AUTHORITY.test(header.value) ? { ...header, value: LOCAL_AUTHORITY } : header,
  );
  if (replaced.some(isAuthority)) return replaced;
  // Pseudo headers have to come first.
  return [{ name: ':authority', value: LOCAL_AUTHORITY, neverIndexed: false }, ...replaced];
}

function isAuthority(header: Header): boolean {
  return header.name === ':authority' || header.name === 'host';
}
