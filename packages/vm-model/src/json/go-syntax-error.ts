/** What the scanner expects next; `end*` are the places after a value. */
type State =
  | { readonly kind: 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'end' | 'string' | 'escape' }
  | { readonly kind: 'hex'; readonly left: number }
  | { readonly kind: 'literal'; readonly word: string; readonly at: number }
  | { readonly kind: 'sign' | 'zero' | 'integer' | 'dot' | 'fraction' | 'e' | 'eSign' | 'exponent' };

/** What the scanner is inside of. */
type Inside = 'objectKey' | 'objectValue' | 'array';

/** Deepest nesting that is read. Go reads ten times as much; here what is read is walked by recursion. */
const MAX_DEPTH = 1_000;
const TOO_DEEP = 'exceeded max depth';
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const LITERALS: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' };
const AFTER: Readonly<Record<Inside, string>> = {
  objectKey: 'after object key',
  objectValue: 'after object key:value pair',
  array: 'after array element',
};

/**
 * Why Go's encoding/json refuses a text, in Go's words; undefined when its syntax is right.
 *
 * Peers see these words in answers, so they should not depend on which side wrote them.
 *
 * @source Go encoding/json scanner.go
 */
export function goSyntaxError(text: string): string | undefined {
  const scanner = new Scanner();
  for (const byte of Buffer.from(text)) {
    const error = scanner.step(String.fromCharCode(byte));
    if (error !== undefined) return error;
  }
  return scanner.isComplete() ? undefined : 'unexpected end of JSON input';
}

/** Whether a text nests too deep. */
export function isTooDeep(text: string): boolean {
  if (text.length <= 2 * MAX_DEPTH) return false;
  let openers = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === OPEN_BRACKET || code === OPEN_BRACE) openers++;
  }
  // Most long texts end here; only one with that many brackets is worth an exact look.
  return openers > MAX_DEPTH && goSyntaxError(text) === TOO_DEEP;
}

class Scanner {
  #state: State = { kind: 'value' };
  readonly #stack: Inside[] = [];

  isComplete(): boolean {
    const isNumber = ['zero', 'integer', 'fraction', 'exponent'].includes(this.#state.kind);
    return this.#stack.length === 0 && (isNumber || this.#state.kind === 'end');
  }

  /** Takes one byte, as Latin-1 character. */
  step(char: string): string | undefined {
    const state = this.#state;
    switch (state.kind) {
      case 'value':
      case 'valueOrEnd':
        return this.#value(char, state.kind === 'valueOrEnd');
      case 'key':
      case 'keyOrEnd':
        return this.#key(char, state.kind === 'keyOrEnd');
      case 'end':
        return this.#afterValue(char);
      case 'string':
      case 'escape':
        return this.#string(char, state.kind === 'escape');
      case 'hex':
        if (!/[0-9a-fA-F]/.test(char)) return invalid(char, 'in \\u hexadecimal character escape');
        return this.#go(state.left > 1 ? { kind: 'hex', left: state.left - 1 } : { kind: 'string' });
      case 'literal':
        return this.#literal(char, state.word, state.at);
      default:
        return this.#number(char, state.kind);
    }
  }

  #go(state: State): undefined {
    this.#state = state;
  }

  #value(char: string, mayEnd: boolean): string | undefined {
    if (isSpace(char)) return undefined;
    if (mayEnd && char === ']') return this.#leave();
    if (char === '{') return this.#enter('objectKey', { kind: 'keyOrEnd' });
    if (char === '[') return this.#enter('array', { kind: 'valueOrEnd' });
    if (char === '"') return this.#go({ kind: 'string' });
    if (char === '-') return this.#go({ kind: 'sign' });
    if (char === '0') return this.#go({ kind: 'zero' });
    if (char >= '1' && char <= '9') return this.#go({ kind: 'integer' });
    const word = LITERALS[char];
    if (word !== undefined) return this.#go({ kind: 'literal', word, at: 1 });
    return invalid(char, 'looking for beginning of value');
  }

  #key(char: string, mayEnd: boolean): string | undefined {
    if (isSpace(char)) return undefined;
    if (mayEnd && char === '}') return this.#leave();
    if (char === '"') return this.#go({ kind: 'string' });
    return invalid(char, 'looking for beginning of object key string');
  }

  #afterValue(char: string): string | undefined {
    if (isSpace(char)) return this.#go({ kind: 'end' });
    const inside = this.#stack.at(-1);
    if (inside === undefined) return invalid(char, 'after top-level value');
    if (inside === 'objectKey' && char === ':') return this.#replace('objectValue', { kind: 'value' });
    if (inside === 'objectValue' && char === ',') return this.#replace('objectKey', { kind: 'key' });
    if (inside === 'array' && char === ',') return this.#go({ kind: 'value' });
    if ((inside === 'objectValue' && char === '}') || (inside === 'array' && char === ']')) return this.#leave();
    return invalid(char, AFTER[inside]);
  }

  #string(char: string, isEscape: boolean): string | undefined {
    if (isEscape) {
      if (char === 'u') return this.#go({ kind: 'hex', left: 4 });
      return 'bfnrt\\/"'.includes(char) ? this.#go({ kind: 'string' }) : invalid(char, 'in string escape code');
    }
    if (char === '"') return this.#go({ kind: 'end' });
    if (char === '\\') return this.#go({ kind: 'escape' });
    return char < ' ' ? invalid(char, 'in string literal') : undefined;
  }

  #literal(char: string, word: string, at: number): string | undefined {
    const expected = word[at] ?? '';
    if (char !== expected) return invalid(char, `in literal ${word} (expecting '${expected}')`);
    return this.#go(at + 1 === word.length ? { kind: 'end' } : { kind: 'literal', word, at: at + 1 });
  }

  #number(char: string, kind: string): string | undefined {
    const isDigit = char >= '0' && char <= '9';
    switch (kind) {
      case 'sign':
        if (!isDigit) return invalid(char, 'in numeric literal');
        return this.#go({ kind: char === '0' ? 'zero' : 'integer' });
      case 'dot':
        return isDigit ? this.#go({ kind: 'fraction' }) : invalid(char, 'after decimal point in numeric literal');
      case 'e':
        if (char === '+' || char === '-') return this.#go({ kind: 'eSign' });
        return isDigit ? this.#go({ kind: 'exponent' }) : invalid(char, 'in exponent of numeric literal');
      case 'eSign':
        return isDigit ? this.#go({ kind: 'exponent' }) : invalid(char, 'in exponent of numeric literal');
      default:
        if (isDigit && kind !== 'zero') return undefined;
        if (char === '.' && (kind === 'zero' || kind === 'integer')) return this.#go({ kind: 'dot' });
        if ((char === 'e' || char === 'E') && kind !== 'exponent') return this.#go({ kind: 'e' });
        return this.#afterValue(char);
    }
  }

  #enter(inside: Inside, state: State): string | undefined {
    if (this.#stack.length >= MAX_DEPTH) return TOO_DEEP;
    this.#stack.push(inside);
    return this.#go(state);
  }

  #replace(inside: Inside, state: State): undefined {
    this.#stack[this.#stack.length - 1] = inside;
    return this.#go(state);
  }

  #leave(): undefined {
    this.#stack.pop();
    return this.#go({ kind: 'end' });
  }
}

function isSpace(char: string): boolean {
  return char === ' ' || char === '\t' || char === '\r' || char === '\n';
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  "'": "\\'",
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

function invalid(char: string, context: string): string {
  return `invalid character '${SHORT_ESCAPES[char] ?? quote(char)}' ${context}`;
}

/** As Go's strconv.Quote: what cannot be printed comes as a number. */
function quote(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`;
  const isPrintable = code < 0x7f || (code > 0xa0 && code !== 0xad);
  return isPrintable ? char : `\\u${code.toString(16).padStart(4, '0')}`;
}
