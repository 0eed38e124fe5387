const SPACE = /[ \r\n\t]/;
/** What Go takes for a part of a name before it looks closer: letters, digits and everything beyond ASCII. */
const NAME_CHAR = /[A-Za-z0-9_:.\-\u0080-\u{10ffff}]/u;
const NAME_START = /[A-Za-z_:\u0080-\u{10ffff}]/u;
/** Characters that XML does not allow. */
const ILLEGAL = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;
const ENTITIES: ReadonlySet<string> = new Set(['lt', 'gt', 'amp', 'apos', 'quot']);

/** Ends a scan with what Go would say. */
class Refusal extends Error {}

/**
 * Why Go's encoding/xml refuses a text, in Go's words; undefined when its syntax is right for Go.
 *
 * Peers see these words in answers, so they should not depend on which side wrote them. What follows the root element
 * is not looked at, as Go does not read on.
 *
 * @source Go encoding/xml xml.go, rawToken, text and popElement
 */
export function goXmlError(xml: string): string | undefined {
  try {
    new Scanner(xml).scan();
    return undefined;
  } catch (caught) {
    if (caught instanceof Refusal) return caught.message;
    throw caught;
  }
}

class Scanner {
  readonly #text: string;
  readonly #open: string[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  scan(): void {
    for (;;) {
      this.#characters('<', false);
      if (this.#at >= this.#text.length)
        throw this.#open.length === 0 ? new Refusal('EOF') : this.#refuse('unexpected EOF');
      this.#at++;
      if (this.#markup() && this.#open.length === 0) return;
    }
  }

  /** Reads what follows a `<`. @returns whether it was an element's start or end. */
  #markup(): boolean {
    const next = this.#next();
    if (next === '?') return this.#instruction();
    if (next === '!') return this.#declaration();
    if (next === '/') this.#endElement();
    else {
      this.#at--;
      this.#startElement();
    }
    return true;
  }

  #startElement(): void {
    const name = this.#name('expected element name after <');
    for (;;) {
      this.#space();
      const char = this.#next();
      if (char === '>') break;
      if (char === '/') {
        if (this.#next() !== '>') throw this.#refuse('expected /> in element');
        return;
      }
      this.#at--;
      this.#name('expected attribute name in element');
      this.#space();
      if (this.#next() !== '=') throw this.#refuse('attribute name without = in element');
      this.#space();
      const quote = this.#next();
      if (quote !== '"' && quote !== "'") throw this.#refuse('unquoted or missing attribute value in element');
      this.#characters(quote, true);
      this.#next();
    }
    this.#open.push(name);
  }

  #endElement(): void {
    const name = this.#name('expected element name after </');
    this.#space();
    if (this.#next() !== '>') throw this.#refuse(`invalid characters between </${localPart(name)} and >`);
    const open = this.#open.pop();
    if (open === undefined) throw this.#refuse(`unexpected end element </${localPart(name)}>`);
    if (localPart(open) !== localPart(name)) {
      throw this.#refuse(`element <${localPart(open)}> closed by </${localPart(name)}>`);
    }
    if (open !== name) {
      const spaces = [open, name].map((n) => n.slice(0, -localPart(n).length).replace(/:$/, ''));
      const [first = '', second = ''] = spaces;
      throw this.#refuse(
        `element <${localPart(open)}> in space ${first} closed by </${localPart(name)}> in space ${second}`,
      );
    }
  }

  #instruction(): false {
    this.#name('expected target name after <?');
    this.#skipPast('?>', 'unexpected EOF');
    return false;
  }

  #declaration(): false {
    const start = this.#next();
    if (start === '-') {
      if (this.#next() !== '-') throw this.#refuse('invalid sequence <!- not part of <!--');
      this.#skipPast('--', 'unexpected EOF');
      if (this.#next() !== '>') throw this.#refuse('invalid sequence "--" not allowed in comments');
    } else if (start === '[') {
      for (const char of 'CDATA[') if (this.#next() !== char) throw this.#refuse('invalid <![ sequence');
      this.#skipPast(']]>', 'unexpected EOF in CDATA section');
    } else {
      this.#directive();
    }
    return false;
  }

  #directive(): void {
    let depth = 0;
    let quote = '';
    for (;;) {
      const char = this.#next();
      if (quote !== '') {
        if (char === quote) quote = '';
      } else if (char === '"' || char === "'") quote = char;
      else if (char === '<') depth++;
      else if (char === '>' && depth-- === 0) return;
    }
  }

  /** Reads text up to `end`, which is left. */
  #characters(end: string, isAttribute: boolean): void {
    const from = this.#at;
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at];
      if (char === end) break;
      if (char === '<' && isAttribute) throw this.#refuse('unescaped < inside quoted string');
      if (!isAttribute && this.#text.startsWith(']]>', this.#at)) {
        throw this.#refuse('unescaped ]]> not in CDATA section');
      }
      this.#at++;
      if (char === '&') this.#entity();
    }
    const illegal = ILLEGAL.exec(this.#text.slice(from, this.#at));
    if (illegal === null) return;
    const code = (illegal[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    throw this.#refuse(`illegal character code U+${code}`);
  }

  #entity(): void {
    const found = /(?:#x[0-9a-fA-F]*|#[0-9]*|[A-Za-z0-9_:.\-\u0080-\uffff]*);?/y;
    found.lastIndex = this.#at;
    const text = found.exec(this.#text)?.[0] ?? '';
    if (text.endsWith(';') && (ENTITIES.has(text.slice(0, -1)) || /^#(x[0-9a-fA-F]+|\d+);$/.test(text))) {
      this.#at += text.length;
      return;
    }
    if (this.#at + text.length >= this.#text.length) throw this.#refuse('unexpected EOF');
    this.#at += text.length;
    throw this.#refuse(`invalid character entity &${text}${text.endsWith(';') ? '' : ' (no semicolon)'}`);
  }

  #name(missing: string): string {
    let name = '';
    while (this.#at < this.#text.length) {
      const char = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
      if (!(name === '' ? NAME_START : NAME_CHAR).test(char)) break;
      name += char;
      this.#at += char.length;
    }
    if (this.#at >= this.#text.length) throw this.#refuse('unexpected EOF');
    if (name === '') throw this.#refuse(missing);
    return name;
  }

  #space(): void {
    while (SPACE.test(this.#text[this.#at] ?? '')) this.#at++;
  }

  #next(): string {
    const char = this.#text[this.#at];
    if (char === undefined) throw this.#refuse('unexpected EOF');
    this.#at++;
    return char;
  }

  #skipPast(end: string, missing: string): void {
    const at = this.#text.indexOf(end, this.#at);
    if (at < 0) {
      this.#at = this.#text.length;
      throw this.#refuse(missing);
    }
    this.#at = at + end.length;
  }

  #refuse(reason: string): Refusal {
    const line = this.#text.slice(0, this.#at).split('\n').length;
    return new Refusal(`XML syntax error on line ${String(line)}: ${reason}`);
  }
}

function localPart(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}
