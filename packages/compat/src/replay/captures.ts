import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { CompatError } from '../errors.ts';

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
  readonly release: string;
  readonly scenario: string;
  readonly channel: 'cmd' | 'notify';
  readonly method: string;
  readonly request: RecordedMessage;
  readonly response?: RecordedMessage;
  readonly grpcStatus: { readonly code: number; readonly message: string };
}

/** A JSON document of a folder of samples. */
export interface SampleDocument {
  readonly path: string;
  readonly text: string;
}

/** What a folder holds that can be replayed. */
export interface Recordings {
  readonly captures: readonly Capture[];
  readonly samples: readonly SampleDocument[];
}

interface FileText {
  readonly path: string;
  readonly text: string;
}

function* readFolder(root: string): Generator<FileText> {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.json'));
  for (const file of files.map((entry) => join(entry.parentPath, entry.name)).sort()) {
    yield { path: relative(root, file), text: readFileSync(file, 'utf8') };
  }
}

function unpack(file: string): string {
  try {
    return gunzipSync(readFileSync(file)).toString('utf8');
  } catch (caught) {
    throw new CompatError('BadOption', `${file} is no .ndjson.gz bundle: name a folder of captures, or such a bundle`, {
      cause: caught,
    });
  }
}

function* readBundle(file: string): Generator<FileText> {
  const lines = unpack(file).trimEnd().split('\n');
  for (const line of lines) {
    const { path, json, text } = JSON.parse(line) as { path: string; json?: unknown; text?: string };
    if (path.endsWith('.json')) yield { path, text: text ?? JSON.stringify(json) };
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const isMessage = (value: unknown): boolean =>
  isObject(value) && typeof value['type'] === 'string' && BASE64.test(String(value['base64']));

/** A file that is meant as a recorded call: nothing else in a folder of captures has a gRPC method or a channel and a request. */
const isMeantAsCapture = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && ('channel' in value || 'method' in value) && ('request' in value || 'grpcStatus' in value);

/** Why a recorded call cannot be replayed; undefined when it can. */
function flawOf(value: Readonly<Record<string, unknown>>): string | undefined {
  const { channel, method, request, response, grpcStatus } = value;
  if (channel !== 'cmd' && channel !== 'notify') return 'channel is neither cmd nor notify';
  if (typeof method !== 'string' || !method.startsWith('/')) return 'method is no path of a gRPC method';
  if (!isMessage(request)) return 'request has no type, or no base64';
  if (response !== undefined && !isMessage(response)) return 'response has no type, or no base64';
  if (!isObject(grpcStatus) || !Number.isInteger(grpcStatus['code'])) return 'grpcStatus has no code';
  if (grpcStatus['code'] === 0 && response === undefined) return 'the call succeeded and has no response';
  return undefined;
}

function readCapture(path: string, value: Readonly<Record<string, unknown>>): Capture {
  const flaw = flawOf(value);
  if (flaw !== undefined) throw new CompatError('DecodeFailed', `${path} is no recorded call: ${flaw}`);
  return { ...(value as unknown as Omit<Capture, 'path'>), path };
}

/** Names of documents that KubeVirt's encoder printed. */
const SAMPLE = /(^|\/)(domain-\w+|libvirt-domain|domainstats-\w+|migrationoptions-\w+|guestinfo-\w+|users-\w+)\.json$/;

/**
 * Reads a folder in the format of KubeVirt captures or samples, or a `.ndjson.gz` bundle of one. Other files are skipped.
 *
 * @throws {CompatError} `BadOption` when there is nothing to replay; `DecodeFailed` for a file that is no JSON.
 */
export function readRecordings(path: string): Recordings {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  if (isFolder === undefined) throw new CompatError('BadOption', `${path} does not exist`);
  const captures: Capture[] = [];
  const samples: SampleDocument[] = [];
  for (const file of isFolder ? readFolder(path) : readBundle(path)) {
    const value = parse(file);
    if (isMeantAsCapture(value)) captures.push(readCapture(file.path, value));
    else if (SAMPLE.test(file.path)) samples.push(file);
  }
  if (captures.length + samples.length === 0) {
    throw new CompatError('BadOption', `${path} holds no recorded message and no sample`);
  }
  return { captures, samples };
}

function parse({ path, text }: FileText): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (caught) {
    throw new CompatError('DecodeFailed', `${path} is no JSON: ${String(caught)}`, { cause: caught });
  }
}
