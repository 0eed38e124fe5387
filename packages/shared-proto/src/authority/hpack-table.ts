import { HpackError } from './hpack-error.ts';

/** One header of a block. Strings hold one character per byte (latin1), since header values are bytes. */
export interface Header {
  readonly name: string;
  readonly value: string;
  /** The sender forbids to index it; an intermediary has to keep that. */
  readonly neverIndexed: boolean;
}

// prettier-ignore
const STATIC_ENTRIES: readonly (readonly [string, string])[] = [
  [':authority', ''], [':method', 'GET'], [':method', 'POST'], [':path', '/'], [':path', '/index.html'],
  [':scheme', 'http'], [':scheme', 'https'], [':status', '200'], [':status', '204'], [':status', '206'],
  [':status', '304'], [':status', '400'], [':status', '404'], [':status', '500'], ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'], ['accept-language', ''], ['accept-ranges', ''], ['accept', ''],
  ['access-control-allow-origin', ''], ['age', ''], ['allow', ''], ['authorization', ''], ['cache-control', ''],
  ['content-disposition', ''], ['content-encoding', ''], ['content-language', ''], ['content-length', ''],
  ['content-location', ''], ['content-range', ''], ['content-type', ''], ['cookie', ''], ['date', ''], ['etag', ''],
  ['expect', ''], ['expires', ''], ['from', ''], ['host', ''], ['if-match', ''], ['if-modified-since', ''],
  ['if-none-match', ''], ['if-range', ''], ['if-unmodified-since', ''], ['last-modified', ''], ['link', ''],
  ['location', ''], ['max-forwards', ''], ['proxy-authenticate', ''], ['proxy-authorization', ''], ['range', ''],
  ['referer', ''], ['refresh', ''], ['retry-after', ''], ['server', ''], ['set-cookie', ''],
  ['strict-transport-security', ''], ['transfer-encoding', ''], ['user-agent', ''], ['vary', ''], ['via', ''],
  ['www-authenticate', ''],
];

/** What an entry costs beside its name and value. @source RFC 7541 section 4.1 */
const ENTRY_OVERHEAD_BYTES = 32;

/** The size of a header as HPACK counts it. */
export function headerSize(name: string, value: string): number {
  return name.length + value.length + ENTRY_OVERHEAD_BYTES;
}

/**
 * The index space of one direction of a connection: the static table and, behind it, what the sender has indexed.
 *
 * @source RFC 7541 section 2.3
 */
export class HpackTable {
  /** The limit that the server's SETTINGS allow; the sender may choose a smaller one. */
  readonly #limitBytes: number;
  #maxBytes: number;
  #bytes = 0;
  /** Newest first. */
  readonly #entries: (readonly [string, string])[] = [];

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
    this.#maxBytes = limitBytes;
  }

  /** @throws {HpackError} if there is no such entry. */
  get(index: number): readonly [name: string, value: string] {
    const entry = STATIC_ENTRIES[index - 1] ?? this.#entries[index - 1 - STATIC_ENTRIES.length];
    if (entry === undefined) throw new HpackError(`no header with index ${index}`);
    return entry;
  }

  /** Puts a header in front; old ones leave, and one larger than the table empties it. */
  add(name: string, value: string): void {
    const size = headerSize(name, value);
    this.#evict(this.#maxBytes - size);
    if (size > this.#maxBytes) return;
    this.#entries.unshift([name, value]);
    this.#bytes += size;
  }

  /** @throws {HpackError} over the limit of the server's SETTINGS. */
  resize(maxBytes: number): void {
    if (maxBytes > this.#limitBytes) throw new HpackError(`table size ${maxBytes} over the limit ${this.#limitBytes}`);
    this.#maxBytes = maxBytes;
    this.#evict(maxBytes);
  }

  #evict(targetBytes: number): void {
    while (this.#bytes > targetBytes) {
      const oldest = this.#entries.pop();
      if (oldest === undefined) return;
      this.#bytes -= headerSize(oldest[0], oldest[1]);
    }
  }
}
