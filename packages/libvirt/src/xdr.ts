import { LibvirtError } from './errors.ts';

const MIN_BUFFER = 512;
const INT_MIN = -0x8000_0000;
const INT_MAX = 0x7fff_ffff;
const UINT_MAX = 0xffff_ffff;
const HYPER_MIN = -(2n ** 63n);
const HYPER_MAX = 2n ** 63n - 1n;
const UHYPER_MAX = 2n ** 64n - 1n;

function malformed(what: string): LibvirtError {
  return LibvirtError.client('Protocol', `malformed XDR: ${what}`);
}

function unencodable(what: string): LibvirtError {
  return LibvirtError.client('InvalidArgument', what);
}

function describe(value: unknown): string {
  return typeof value === 'bigint' || typeof value === 'number' ? String(value) : `a ${typeof value}`;
}

/** Reads XDR values in order; every length is checked against the bytes that are there before anything is made. */
export class XdrReader {
  readonly #buffer: Buffer;
  readonly #view: DataView;
  readonly #end: number;
  #position: number;

  constructor(buffer: Buffer, start = 0, end = buffer.length) {
    this.#buffer = buffer;
    this.#view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
    this.#position = start;
    this.#end = end;
  }

  /** Bytes not read yet. */
  get remaining(): number {
    return this.#end - this.#position;
  }

  /** Signed 32-bit integer. */
  int(): number {
    return this.#view.getInt32(this.#take(4));
  }

  /** Unsigned 32-bit integer. */
  uint(): number {
    return this.#view.getUint32(this.#take(4));
  }

  /** Signed 64-bit integer. */
  hyper(): bigint {
    return this.#view.getBigInt64(this.#take(8));
  }

  /** Unsigned 64-bit integer. */
  uhyper(): bigint {
    return this.#view.getBigUint64(this.#take(8));
  }

  /** IEEE 754 double. */
  double(): number {
    return this.#view.getFloat64(this.#take(8));
  }

  /** Counted UTF-8 text of at most `max` bytes. */
  string(max: number): string {
    const length = this.#length(max, 'string');
    const start = this.#take(length + (-length & 3));
    return this.#buffer.toString('utf8', start, start + length);
  }

  /** Counted bytes, copied out: the buffer that packets are read into is used again. */
  opaque(max: number): Uint8Array {
    const length = this.#length(max, 'opaque');
    return this.fixedOpaque(length);
  }

  /** Bytes of known length, copied out. */
  fixedOpaque(length: number): Uint8Array {
    const start = this.#take(length + (-length & 3));
    return new Uint8Array(this.#buffer.subarray(start, start + length));
  }

  /** A uuid as text with dashes. */
  uuid(): string {
    const start = this.#take(16);
    const hex = this.#buffer.toString('hex', start, start + 16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }

  /** Count of a list of at most `max` elements, each of which takes 4 bytes or more. */
  count(max: number): number {
    const count = this.uint();
    if (count > max) throw malformed(`list of ${String(count)} elements, limit ${String(max)}`);
    if (count * 4 > this.remaining)
      throw malformed(`list of ${String(count)} elements in ${String(this.remaining)} bytes`);
    return count;
  }

  /** Everything that is left, not copied. */
  rest(): Buffer {
    return this.#buffer.subarray(this.#take(this.remaining), this.#end);
  }

  #length(max: number, what: string): number {
    const length = this.uint();
    if (length > max) throw malformed(`${what} of ${String(length)} bytes, limit ${String(max)}`);
    return length;
  }

  #take(bytes: number): number {
    const start = this.#position;
    if (bytes > this.#end - start) {
      throw malformed(`${String(bytes)} bytes wanted at offset ${String(start)}, ${String(this.#end - start)} left`);
    }
    this.#position = start + bytes;
    return start;
  }
}

/** Writes XDR values in order into a buffer that grows. Values that do not fit throw `InvalidArgument`. */
export class XdrWriter {
  #buffer = Buffer.allocUnsafe(MIN_BUFFER);
  #position = 0;

  /** What was written, without a copy. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#position);
  }

  /** Signed 32-bit integer. */
  int(value: number): void {
    if (!Number.isInteger(value) || value < INT_MIN || value > INT_MAX) {
      throw unencodable(`${describe(value)} is no signed 32-bit integer`);
    }
    const at = this.#reserve(4);
    this.#buffer.writeInt32BE(value, at);
  }

  /** Unsigned 32-bit integer. */
  uint(value: number): void {
    if (!Number.isInteger(value) || value < 0 || value > UINT_MAX) {
      throw unencodable(`${describe(value)} is no unsigned 32-bit integer`);
    }
    const at = this.#reserve(4);
    this.#buffer.writeUInt32BE(value, at);
  }

  /** Signed 64-bit integer. */
  hyper(value: bigint): void {
    if (typeof value !== 'bigint' || value < HYPER_MIN || value > HYPER_MAX) {
      throw unencodable(`${describe(value)} is no signed 64-bit bigint`);
    }
    const at = this.#reserve(8);
    this.#buffer.writeBigInt64BE(value, at);
  }

  /** Unsigned 64-bit integer. */
  uhyper(value: bigint): void {
    if (typeof value !== 'bigint' || value < 0n || value > UHYPER_MAX) {
      throw unencodable(`${describe(value)} is no unsigned 64-bit bigint`);
    }
    const at = this.#reserve(8);
    this.#buffer.writeBigUInt64BE(value, at);
  }

  /** IEEE 754 double. */
  double(value: number): void {
    if (typeof value !== 'number') throw unencodable(`${describe(value)} is no number`);
    const at = this.#reserve(8);
    this.#buffer.writeDoubleBE(value, at);
  }

  /** Counted UTF-8 text of at most `max` bytes, without NUL. */
  string(value: string, max: number): void {
    if (typeof value !== 'string') throw unencodable(`${describe(value)} is no text`);
    const length = Buffer.byteLength(value);
    if (length > max) throw unencodable(`text of ${String(length)} bytes, limit ${String(max)}`);
    if (value.includes('\0')) throw unencodable('text with a NUL');
    this.uint(length);
    const start = this.#reserve(length + (-length & 3));
    this.#buffer.write(value, start, length);
    this.#pad(start + length);
  }

  /** Counted bytes, at most `max`. */
  opaque(value: Uint8Array, max: number): void {
    if (!(value instanceof Uint8Array)) throw unencodable(`${describe(value)} is no Uint8Array`);
    if (value.length > max) throw unencodable(`${String(value.length)} bytes, limit ${String(max)}`);
    this.uint(value.length);
    this.#padded(value);
  }

  /** A uuid given as text, with or without dashes. */
  uuid(value: string): void {
    const hex = typeof value === 'string' ? value.replaceAll('-', '') : '';
    const start = this.#reserve(16);
    if (hex.length !== 32 || this.#buffer.write(hex, start, 16, 'hex') !== 16) {
      throw unencodable(`'${value}' is no uuid`);
    }
  }

  /** Count of a list. */
  count(length: number, max: number): void {
    if (length > max) throw unencodable(`list of ${String(length)} elements, limit ${String(max)}`);
    this.uint(length);
  }

  /** Bytes as they are, without count or padding. */
  raw(value: Uint8Array): void {
    const at = this.#reserve(value.length);
    this.#buffer.set(value, at);
  }

  /** Overwrites four bytes written earlier. */
  patchUint(offset: number, value: number): void {
    this.#buffer.writeUInt32BE(value, offset);
  }

  #padded(value: Uint8Array): void {
    const start = this.#reserve(value.length + (-value.length & 3));
    this.#buffer.set(value, start);
    this.#pad(start + value.length);
  }

  #pad(from: number): void {
    for (let at = from; at < this.#position; at++) this.#buffer[at] = 0;
  }

  /** Makes room; may replace the buffer, so call it before the buffer is looked at. */
  #reserve(bytes: number): number {
    const start = this.#position;
    const end = start + bytes;
    if (end > this.#buffer.length) {
      const bigger = Buffer.allocUnsafe(Math.max(end, this.#buffer.length * 2));
      this.#buffer.copy(bigger, 0, 0, start);
      this.#buffer = bigger;
    }
    this.#position = end;
    return start;
  }
}
