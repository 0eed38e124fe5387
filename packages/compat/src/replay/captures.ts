import { STATUS_NAMES } from '../connection/status-names.ts';

/** One side of a recorded call. */
export interface RecordedMessage {
  /** Full name of the protobuf message. */
  readonly type: string;
  readonly base64: string;
  /** What the recorder read in the bytes: JSON, or text for a message that it could not decode. */
  readonly protobufJSON?: unknown;
  /** Fields that hold JSON themselves, which read `@embedded` in `protobufJSON`, by dotted path. */
  readonly embedded?: Readonly<Record<string, unknown>>;
}

/** A recorded call, in the format of KubeVirt captures. */
export interface Capture {
  readonly path: string;
  /** A tag, or another word where the recorder was not told. */
  readonly release: string;
  readonly scenario: string;
  readonly channel: 'cmd' | 'notify';
  readonly method: string;
  /** Number of the connection, where connections were recorded. */
  readonly connection?: number;
  readonly requestMetadata?: Readonly<Record<string, readonly string[]>>;
  readonly request: RecordedMessage;
  readonly response?: RecordedMessage;
  readonly grpcStatus: { readonly code: number; readonly message: string };
}

type Value = Readonly<Record<string, unknown>>;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Files with a number in front are recorded calls; nothing else in a folder of captures is named so. */
export const NUMBERED = /(^|\/)(\d{3,})-[^/]+\.json$/;

export const isObject = (value: unknown): value is Value => typeof value === 'object' && value !== null;

const isMessage = (value: unknown): boolean =>
  isObject(value) && typeof value['type'] === 'string' && BASE64.test(String(value['base64']));

/** Whether a file is meant as a recorded call, by its name or by what it holds. */
export function isMeantAsCapture(path: string, value: unknown): boolean {
  if (NUMBERED.test(path)) return true;
  return isObject(value) && ('channel' in value || 'method' in value) && ('request' in value || 'grpcStatus' in value);
}

/** Reads a recorded call. @returns why it cannot be replayed, as text, when it cannot. */
export function readCapture(path: string, value: unknown): Capture | string {
  if (!isObject(value)) return 'is no recorded call: it holds no object';
  const flaw = flawOf(value) ?? numberFlaw(path, value);
  return flaw === undefined
    ? { release: '', ...(value as unknown as Omit<Capture, 'path' | 'release'>), path }
    : `is no recorded call: ${flaw}`;
}

function flawOf(value: Value): string | undefined {
  const { channel, method, request, response, grpcStatus } = value;
  if (channel !== 'cmd' && channel !== 'notify') return 'channel is neither cmd nor notify';
  if (typeof method !== 'string' || !/^\/[^/]+\/[^/]+$/.test(method)) return 'method is no path of a gRPC method';
  if (!isMessage(request)) return 'request has no type, or no base64';
  if (response !== undefined && !isMessage(response)) return 'response has no type, or no base64';
  if (!isObject(grpcStatus) || !Number.isInteger(grpcStatus['code'])) return 'grpcStatus has no code';
  const { code, name, message } = grpcStatus as {
    readonly code: number;
    readonly name?: unknown;
    readonly message?: unknown;
  };
  if (code < 0 || code > 16) return `grpcStatus has code ${code}, which gRPC does not have`;
  if (name !== undefined && name !== STATUS_NAMES[code])
    return `grpcStatus has code ${code}, and the name ${JSON.stringify(name)}`;
  if (message !== undefined && typeof message !== 'string') return 'grpcStatus has a message that is no text';
  if (code === 0 && response === undefined) return 'the call succeeded and has no response';
  if (code !== 0 && response !== undefined) return `the call failed with code ${code} and has a response`;
  return metadataFlaw(value);
}

/** The number of a call stands in its file and in the name of its file. */
function numberFlaw(path: string, { seq, atMs, durationMs }: Value): string | undefined {
  const [, , number] = NUMBERED.exec(path) ?? [];
  const isSame = number === undefined ? Number.isInteger(seq) : seq === Number(number);
  if (seq !== undefined && !isSame) return `seq is ${JSON.stringify(seq)}`;
  if (atMs !== undefined && typeof atMs !== 'number') return 'atMs is no number';
  return durationMs !== undefined && typeof durationMs !== 'number' ? 'durationMs is no number' : undefined;
}

function metadataFlaw({ release, requestMetadata, connection }: Value): string | undefined {
  if (release !== undefined && typeof release !== 'string') return 'release is no text';
  if (connection !== undefined && !Number.isInteger(connection)) return 'connection is no number';
  if (requestMetadata === undefined) return undefined;
  const isGood =
    isObject(requestMetadata) &&
    Object.values(requestMetadata).every(
      (values) => Array.isArray(values) && values.every((text) => typeof text === 'string'),
    );
  return isGood ? undefined : 'requestMetadata is not a list of texts for each key';
}
