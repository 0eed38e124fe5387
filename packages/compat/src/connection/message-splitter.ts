import { CompatError } from '../errors.ts';

const HEADER_BYTES = 5;
/** Peers take at most 4 MiB; we take more from peers that do not care. */
const MAX_MESSAGE_BYTES = 64 * 1_048_576;

/** Cuts the content of a stream into gRPC messages. Keeps less than one message. */
export class MessageSplitter {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** Bytes of a message that is not complete yet. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** @throws {CompatError} `DecodeFailed` for a message that is compressed, or larger than anybody takes. */
  push(chunk: Buffer): readonly Buffer[] {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    const messages: Buffer[] = [];
    while (this.#bytes >= HEADER_BYTES) {
      const length = this.#lengthOfNext();
      if (this.#bytes < HEADER_BYTES + length) break;
      const all = this.#joined();
      messages.push(all.subarray(HEADER_BYTES, HEADER_BYTES + length));
      this.#parts = [all.subarray(HEADER_BYTES + length)];
      this.#bytes = all.length - HEADER_BYTES - length;
    }
    return messages;
  }

  #lengthOfNext(): number {
    const [first] = this.#parts;
    const head = first !== undefined && first.length >= HEADER_BYTES ? first : this.#joined();
    const length = head.readUInt32BE(1);
    if (head[0] !== 0) throw new CompatError('DecodeFailed', 'a message is compressed, or its length is damaged');
    if (length > MAX_MESSAGE_BYTES) throw new CompatError('DecodeFailed', `a message of ${length} bytes`);
    return length;
  }

  #joined(): Buffer {
    const all = Buffer.concat(this.#parts);
    this.#parts = [all];
    return all;
  }
}

/** A message as it stands in the content of a stream. */
export function renderMessage(message: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}
