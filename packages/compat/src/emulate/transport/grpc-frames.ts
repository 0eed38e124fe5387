/** gRPC's receive limit on both sides. @source releases.json eras.messageSizeLimits; wire.md 2 */
const MAX_RECEIVE_BYTES = 4_194_304;

/** gRPC status codes that the emulated peers send or meet. */
export const GRPC = {
  ok: 0,
  canceled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

/** One message with its 5-byte header, uncompressed. */
export function renderFrame(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

/** The message of a unary call, or why there is none. */
export type ReadMessage =
  | { readonly kind: 'message'; readonly bytes: Buffer }
  | { readonly kind: 'tooLarge'; readonly length: number }
  | { readonly kind: 'incomplete' };

/** Collects the one message of a unary call; bounded by gRPC's limit. */
export class MessageReader {
  #bytes = Buffer.alloc(0);

  /** @returns false once the message is larger than the limit; nothing more is kept then. */
  push(chunk: Buffer): boolean {
    if (this.#length > MAX_RECEIVE_BYTES) return false;
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    return this.#length <= MAX_RECEIVE_BYTES;
  }

  read(): ReadMessage {
    const length = this.#length;
    if (length > MAX_RECEIVE_BYTES) return { kind: 'tooLarge', length };
    if (this.#bytes.length < 5 + length || this.#bytes.length < 5) return { kind: 'incomplete' };
    return { kind: 'message', bytes: this.#bytes.subarray(5, 5 + length) };
  }

  get #length(): number {
    return this.#bytes.length < 5 ? 0 : this.#bytes.readUInt32BE(1);
  }
}

/** A status text for the `grpc-message` trailer. @source gRPC over HTTP/2, percent encoding of status messages */
export function encodeStatusText(text: string): string {
  return [...Buffer.from(text, 'utf8')]
    .map((byte) => {
      const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
      return isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');
}

/** The text of a `grpc-message` trailer; as it stands if it is badly encoded. */
export function decodeStatusText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const TIMEOUT_UNITS: readonly (readonly [unit: string, micros: number])[] = [
  ['u', 1],
  ['m', 1_000],
  ['S', 1_000_000],
];

/** `grpc-timeout` as grpc-go counts it: the finest unit that fits in eight digits, from microseconds up. */
export function renderTimeout(timeoutMs: number): string {
  for (const [unit, micros] of TIMEOUT_UNITS) {
    const count = Math.max(1, Math.ceil((timeoutMs * 1_000) / micros));
    if (count < 100_000_000) return `${count}${unit}`;
  }
  return '99999999S';
}

/** Milliseconds of a `grpc-timeout` header; undefined without one. */
export function parseTimeout(header: string | undefined): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(header ?? '');
  if (match === null) return undefined;
  const factors: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
  return Number(match[1]) * (factors[match[2] ?? ''] ?? 0);
}
