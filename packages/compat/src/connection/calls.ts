import type { Header } from '@virtwire/shared-proto/http2';
import { CompatError } from '../errors.ts';
import type { Sender } from './frames.ts';
import { MessageSplitter } from './message-splitter.ts';
import { StreamReader } from './stream-reader.ts';

/** One side of a call, as it was on a connection. */
export interface StreamContent {
  readonly streamId: number;
  /** In the order in which they were sent. */
  readonly headers: readonly Header[];
  /** What came behind the content. */
  readonly trailers: readonly Header[];
  readonly messages: readonly Buffer[];
  readonly hasEnded: boolean;
  readonly wasReset: boolean;
}

interface OpenStream {
  headers: readonly Header[];
  trailers: readonly Header[];
  readonly messages: Buffer[];
  readonly splitter: MessageSplitter;
  hasEnded: boolean;
  wasReset: boolean;
}

/** What one direction of a recorded connection holds. */
export interface ConnectionContent {
  /** In the order of their beginnings. */
  readonly streams: readonly StreamContent[];
  /** Why the bytes cannot be read to their end; undefined when they can. */
  readonly flaw: string | undefined;
}

/** Reads all bytes that one side sent on a connection. What comes before a flaw is kept. */
export function readConnection(sender: Sender, bytes: Buffer): ConnectionContent {
  const reader = new StreamReader(sender);
  const streams = new Map<number, OpenStream>();
  try {
    for (const event of reader.push(bytes)) {
      if (event.kind === 'other') continue;
      const stream = event.kind === 'headers' ? openStream(streams, event.streamId) : streams.get(event.streamId);
      if (stream === undefined) throw new CompatError('DecodeFailed', `stream ${event.streamId} has no header`);
      if (event.kind === 'reset') stream.wasReset = true;
      else if (event.kind === 'data') stream.messages.push(...stream.splitter.push(event.bytes));
      else if (stream.headers.length === 0) stream.headers = event.headers;
      else stream.trailers = event.headers;
      if (event.kind !== 'reset' && event.ends) stream.hasEnded = true;
    }
    return { streams: contents(streams), flaw: reader.incomplete ?? halfMessage(streams) };
  } catch (caught) {
    return { streams: contents(streams), flaw: caught instanceof Error ? caught.message : String(caught) };
  }
}

function openStream(streams: Map<number, OpenStream>, streamId: number): OpenStream {
  const known = streams.get(streamId);
  if (known !== undefined) return known;
  const made: OpenStream = {
    ...{ headers: [], trailers: [], messages: [], splitter: new MessageSplitter() },
    ...{ hasEnded: false, wasReset: false },
  };
  streams.set(streamId, made);
  return made;
}

function halfMessage(streams: ReadonlyMap<number, OpenStream>): string | undefined {
  for (const [streamId, { splitter, hasEnded, wasReset }] of streams) {
    const isHalf = hasEnded && !wasReset && splitter.pendingBytes > 0;
    if (isHalf) return `stream ${streamId} ends within a message`;
  }
  return undefined;
}

const contents = (streams: ReadonlyMap<number, OpenStream>): readonly StreamContent[] =>
  [...streams].map(([streamId, { headers, trailers, messages, hasEnded, wasReset }]) => ({
    ...{ streamId, headers, trailers, messages, hasEnded, wasReset },
  }));
