import { LauncherError } from '../errors.ts';

const ALPHABET = /^[A-Za-z0-9+/]$/;
const QUANTUM = 4;

/**
 * Decodes standard base64; line ends are skipped.
 *
 * @throws {LauncherError} `BadRequest` in Go's words, with the offset of the first bad byte.
 * @source Go encoding/base64, StdEncoding.DecodeString
 */
export function decodeBase64(text: string): Buffer {
  let inQuantum = 0;
  let hasEnded = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\r' || char === '\n') continue;
    if (hasEnded) throw illegal(at);
    if (ALPHABET.test(char)) {
      inQuantum = (inQuantum + 1) % QUANTUM;
    } else if (char === '=' && inQuantum >= 2) {
      at = inQuantum === 2 ? secondPad(text, at) : at;
      hasEnded = true;
      inQuantum = 0;
    } else {
      throw illegal(at);
    }
  }
  if (inQuantum !== 0) throw illegal(text.length - inQuantum);
  return Buffer.from(text, 'base64');
}

function secondPad(text: string, at: number): number {
  let next = at + 1;
  while (text.charAt(next) === '\r' || text.charAt(next) === '\n') next++;
  if (next >= text.length) throw illegal(text.length);
  if (text.charAt(next) !== '=') throw illegal(next);
  return next;
}

function illegal(at: number): LauncherError {
  return new LauncherError('BadRequest', `illegal base64 data at input byte ${String(at)}`);
}
