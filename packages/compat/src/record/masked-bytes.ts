import { CLIENT_PREFACE, encodeLiterals, type Header, renderHeaderFrames } from '@virtwire/shared-proto/http2';
import { FRAME, renderDataFrames, renderFrame, type Sender } from '../connection/frames.ts';
import type { ConnectionEvent } from '../connection/stream-reader.ts';
import { renderMessage } from '../connection/message-splitter.ts';
import { MASK, maskText } from './mask-json.ts';

/** Headers whose values are kept: gRPC's own, and none that carries credentials. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  ...[':method', ':scheme', ':path', ':authority', ':status', 'content-type', 'user-agent', 'te', 'date'],
  ...['grpc-timeout', 'grpc-encoding', 'grpc-accept-encoding', 'accept-encoding', 'grpc-status', 'grpc-message'],
]);

/** Last stream and error code of a GOAWAY frame; behind them is text. */
const GO_AWAY_BYTES = 8;
const LARGEST_KNOWN_TYPE = 9;

/** A header without what is secret in it. */
export function maskHeader(header: Header): Header {
  const { name, value } = header;
  const masked = PLAIN_HEADERS.has(name) ? maskText(value) : MASK;
  return masked === value ? header : { ...header, value: masked };
}

/**
 * Renders one direction of a connection for the disk: frames as they were sent, with messages and headers masked.
 *
 * From the first header that has to be masked on, all header blocks are written anew as literals, since what was sent may
 * refer to it.
 */
export class MaskedBytes {
  #isRewriting = false;
  #hasPreface: boolean;

  constructor(sender: Sender) {
    this.#hasPreface = sender === 'server';
  }

  /** The bytes of an event other than data. */
  ofEvent(event: Exclude<ConnectionEvent, { readonly kind: 'data' }>): Buffer {
    if (event.kind === 'headers') return this.#withPreface(this.#headers(event));
    const { frame } = event;
    // Nobody can say what is in frames of an unknown type.
    if (frame.type > LARGEST_KNOWN_TYPE) return this.#withPreface(Buffer.alloc(0));
    if (frame.type !== FRAME.goAway) return this.#withPreface(frame.raw);
    return this.#withPreface(renderFrame(frame, frame.payload.subarray(0, GO_AWAY_BYTES)));
  }

  /** The bytes of whole messages, which are masked already. */
  ofMessages(streamId: number, messages: readonly Uint8Array[], ends: boolean): Buffer {
    if (messages.length === 0 && !ends) return Buffer.alloc(0);
    return renderDataFrames(streamId, Buffer.concat(messages.map((message) => renderMessage(message))), ends);
  }

  #headers({ headers, frames }: Extract<ConnectionEvent, { readonly kind: 'headers' }>): Buffer {
    const masked = headers.map((header) => maskHeader(header));
    this.#isRewriting ||= masked.some((header, i) => header !== headers[i]);
    const [first] = frames;
    if (first === undefined || !this.#isRewriting) return Buffer.concat(frames.map(({ raw }) => raw));
    return Buffer.concat(renderHeaderFrames(first, Buffer.alloc(0), encodeLiterals(masked)));
  }

  #withPreface(bytes: Buffer): Buffer {
    if (this.#hasPreface) return bytes;
    this.#hasPreface = true;
    return Buffer.concat([CLIENT_PREFACE, bytes]);
  }
}
