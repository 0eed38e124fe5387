import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Header } from '@virtwire/shared-proto/http2';
import { readConnection, type StreamContent } from '../connection/calls.ts';
import { FRAME, type Frame, frameName, FrameReader } from '../connection/frames.ts';
import { headerValue, StreamReader } from '../connection/stream-reader.ts';
import { authorityProblem } from './authority.ts';
import type { Capture } from './captures.ts';
import type { Flaw, RecordedConnection, RecordedFrames, Recordings } from './recordings.ts';

/** Calls of a connection, by the files that recorded them one by one. */
function capturesOf(place: Pick<RecordedConnection, 'folder' | 'channel' | 'connection'>, all: readonly Capture[]) {
  return all.filter(
    ({ path, channel, connection }) =>
      dirname(path) === place.folder && channel === place.channel && connection === place.connection,
  );
}

/** Calls are compared where they say which connection they were on; those of a folder by hand do not. */
function hasCallsOf({ folder, channel }: RecordedConnection, all: readonly Capture[]): boolean {
  return all.some((call) => dirname(call.path) === folder && call.channel === channel && call.connection !== undefined);
}

/** What the client sent on a connection. */
function clientOf(
  place: Pick<RecordedConnection, 'folder' | 'channel' | 'connection'>,
  connections: readonly RecordedConnection[],
): RecordedConnection | undefined {
  return connections.find(
    ({ folder, channel, connection, sender }) =>
      sender === 'client' && folder === place.folder && channel === place.channel && connection === place.connection,
  );
}

/** What is wrong with recorded connections: bytes that are no HTTP/2, and calls that are not those of the records. */
export function connectionProblems(recordings: Recordings): readonly Flaw[] {
  const { connections, frames, captures } = recordings;
  return [
    ...connections.flatMap((connection) => {
      const calls = hasCallsOf(connection, captures) ? capturesOf(connection, captures) : undefined;
      const problems =
        connection.sender === 'client'
          ? requestProblems(connection, calls)
          : answerProblems(connection, clientOf(connection, connections), calls);
      return problems.map((problem) => ({ path: connection.path, problem }));
    }),
    ...frames.flatMap((recorded) => {
      const twin = clientOf(recorded, connections);
      const calls = capturesOf(recorded, captures);
      return frameProblems(recorded, twin, calls).map((problem) => ({ path: recorded.path, problem }));
    }),
  ];
}

function requestProblems({ bytes }: RecordedConnection, calls: readonly Capture[] | undefined): readonly string[] {
  const { streams, flaw } = readConnection('client', bytes);
  const problems = flaw === undefined ? [] : [flaw];
  const authorities = new Set(streams.map(({ headers }) => headerValue(headers, ':authority') ?? ''));
  if (authorities.size > 1) problems.push(`it changes its authority: ${[...authorities].join(', ')}`);
  for (const { streamId, headers } of streams) {
    problems.push(...headerProblems(headers).map((text) => `stream ${streamId}: ${text}`));
  }
  return [...problems, ...compareCalls(streams, calls, requestDifference)];
}

function answerProblems(
  { bytes }: RecordedConnection,
  client: RecordedConnection | undefined,
  calls: readonly Capture[] | undefined,
): readonly string[] {
  const { streams, flaw } = readConnection('server', bytes);
  const problems = flaw === undefined ? [] : [flaw];
  // Answers come in the order in which they are ready; streams are numbered in the order of the calls.
  const ordered = streams.toSorted((a, b) => a.streamId - b.streamId);
  const asked = client === undefined ? [] : readConnection('client', client.bytes).streams;
  return [...problems, ...compareCalls(ordered, calls && answeredCalls(calls, asked, ordered), answerDifference)];
}

/** The calls that the server said anything to; a client may have given up before, or the connection have ended. */
function answeredCalls(
  calls: readonly Capture[],
  asked: readonly StreamContent[],
  answers: readonly StreamContent[],
): readonly Capture[] {
  if (asked.length !== calls.length) return calls;
  const answered = new Set(answers.map(({ streamId }) => streamId));
  return calls.filter(({ grpcStatus }, i) => grpcStatus.code === 0 || answered.has(asked[i]?.streamId ?? -1));
}

/** What every request of a gRPC client has. @source captures, connections/*.frames.json */
function headerProblems(headers: readonly Header[]): readonly string[] {
  const problems: string[] = [];
  const expect = (name: string, expected: RegExp): void => {
    const value = headerValue(headers, name);
    if (value === undefined || !expected.test(value)) problems.push(`header ${name} is ${value ?? 'missing'}`);
  };
  expect(':method', /^POST$/);
  expect(':path', /^\/[^/]+\/[^/]+$/);
  expect('content-type', /^application\/grpc/);
  const timeout = headerValue(headers, 'grpc-timeout');
  if (timeout !== undefined && !/^\d{1,8}[HMSmun]$/.test(timeout)) problems.push(`header grpc-timeout is ${timeout}`);
  const authority = authorityProblem(headerValue(headers, ':authority') ?? '', undefined);
  return authority === undefined ? problems : [...problems, authority];
}

function compareCalls(
  streams: readonly StreamContent[],
  calls: readonly Capture[] | undefined,
  difference: (stream: StreamContent, call: Capture) => string | undefined,
): readonly string[] {
  if (calls === undefined) return [];
  const count =
    streams.length === calls.length ? [] : [`it has ${streams.length} calls, and ${calls.length} are recorded`];
  const different = streams.flatMap((stream, i) => {
    const call = calls[i];
    const found = call && difference(stream, call);
    return found === undefined ? [] : [`stream ${stream.streamId}: ${found} (${call?.path ?? ''})`];
  });
  return [...count, ...different];
}

function requestDifference({ headers, messages }: StreamContent, call: Capture): string | undefined {
  const path = headerValue(headers, ':path');
  if (path !== call.method) return `it calls ${path ?? 'nothing'} instead of ${call.method}`;
  const authority = headerValue(headers, ':authority');
  const recorded = call.requestMetadata?.[':authority']?.[0];
  if (recorded !== undefined && authority !== recorded) return `its authority is ${authority ?? ''}, not ${recorded}`;
  return messageDifference(messages, call.request.base64);
}

function answerDifference({ headers, trailers, messages }: StreamContent, call: Capture): string | undefined {
  const status = headerValue(trailers, 'grpc-status') ?? headerValue(headers, 'grpc-status');
  const { code } = call.grpcStatus;
  // The client gave up, or the connection ended.
  if (status === undefined) return code === 0 ? 'it has no status, and the call succeeded' : undefined;
  if (Number(status) !== code) return `its status is ${status} instead of ${code}`;
  return code === 0 ? messageDifference(messages, call.response?.base64 ?? '') : undefined;
}

function messageDifference(messages: readonly Buffer[], base64: string): string | undefined {
  const [message] = messages;
  if (message === undefined || messages.length > 1) return `it has ${messages.length} messages instead of one`;
  return message.equals(Buffer.from(base64, 'base64')) ? undefined : 'its message is not the recorded one';
}

/** What the bytes of a connection are as frames, in the form of the recorder. */
interface ShownFrame {
  readonly frame: string;
  readonly stream: number;
  readonly flags: number;
  readonly length: number;
  readonly headers?: readonly (readonly [string, string])[];
}

function frameProblems(
  { frames }: RecordedFrames,
  twin: RecordedConnection | undefined,
  calls: readonly Capture[],
): readonly string[] {
  const blocks = frames.flatMap(({ headers }) => (headers === undefined ? [] : [pairsOf(headers)]));
  const problems = blocks.flatMap((headers) => headerProblems(headers));
  const paths = blocks.map((headers) => headerValue(headers, ':path'));
  const methods = calls.map(({ method }) => method);
  if (calls.length > 0 && !isDeepStrictEqual(paths, methods))
    problems.push('its calls are not those that are recorded');
  if (twin === undefined) return problems;
  const shown = shownFrames(twin.bytes);
  const at = frames.slice(1).findIndex((frame, i) => !isShown(frame, shown[i]));
  if (at !== -1) problems.push(`frame ${at + 1} is not the one of ${twin.path}`);
  else if (shown.length !== frames.length - 1) problems.push(`${twin.path} has ${shown.length} frames`);
  return problems;
}

function pairsOf(headers: unknown): readonly Header[] {
  if (!Array.isArray(headers)) return [];
  return headers.map((pair: unknown) => {
    const [name, value] = Array.isArray(pair) ? (pair as readonly unknown[]) : [];
    return { name: String(name), value: String(value), neverIndexed: false };
  });
}

function isShown(recorded: Readonly<Record<string, unknown>>, shown: ShownFrame | undefined): boolean {
  if (shown === undefined) return false;
  const isSame = (['frame', 'stream', 'flags', 'length'] as const).every((key) => recorded[key] === shown[key]);
  return isSame && isDeepStrictEqual(recorded['headers'], shown.headers);
}

function shownFrames(bytes: Buffer): readonly ShownFrame[] {
  try {
    const frames = new FrameReader('client').push(bytes);
    const blocks = new StreamReader('client').push(bytes).filter((event) => event.kind === 'headers');
    const headers = blocks.map((block) => block.headers);
    return frames.map((frame) => showFrame(frame, frame.type === FRAME.headers ? headers.shift() : undefined));
  } catch {
    // What is wrong with the bytes is told of the bytes.
    return [];
  }
}

function showFrame({ type, streamId, flags, length }: Frame, headers: readonly Header[] | undefined): ShownFrame {
  const shown = { frame: frameName(type), stream: streamId, flags, length };
  if (headers === undefined) return shown;
  return { ...shown, headers: headers.map(({ name, value }) => [name, value] as const) };
}
