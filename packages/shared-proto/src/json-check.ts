/** Deeper documents are refused: what walks them recursively would overflow the stack. Real ones stay under 30. */
const MAX_DEPTH = 200;
/** A `null` with this much space around it is nothing that anybody prints. */
const MAX_NULL_BYTES = 64;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: readonly number[] = [0x7b, 0x5b];
const CLOSING: readonly number[] = [0x7d, 0x5d];

/**
 * Checks that bytes from a peer are a JSON object in UTF-8 that is safe to walk.
 *
 * @returns what is wrong, or undefined.
 */
export function checkJson(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0) return 'unexpected end of JSON input';
  // Before parsing, so that a hostile document costs one pass over its bytes.
  if (isTooDeep(bytes)) return `exceeded max depth of ${MAX_DEPTH}`;
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? undefined : 'not a JSON object';
  } catch (caught) {
    return caught instanceof Error ? caught.message : String(caught);
  }
}

/** Says whether bytes are JSON's `null`, which a launcher written in Go takes for options and then crashes on. */
export function isJsonNull(bytes: Uint8Array): boolean {
  return bytes.length < MAX_NULL_BYTES && Buffer.from(bytes).toString().trim() === 'null';
}

function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let isInString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    if (isInString && byte === BACKSLASH) i++;
    else if (byte === QUOTE) isInString = !isInString;
    else if (isInString) continue;
    else if (CLOSING.includes(byte)) depth--;
    else if (OPENING.includes(byte) && ++depth > MAX_DEPTH) return true;
  }
  return false;
}
