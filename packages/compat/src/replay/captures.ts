import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { CompatError } from '../errors.ts';

/** One side of a recorded call. */
export interface RecordedMessage {
  /** Full name of the protobuf message. */
  readonly type: string;
  readonly base64: string;
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

function* readBundle(file: string): Generator<FileText> {
  const lines = gunzipSync(readFileSync(file)).toString('utf8').trimEnd().split('\n');
  for (const line of lines) {
    const { path, json, text } = JSON.parse(line) as { path: string; json?: unknown; text?: string };
    if (path.endsWith('.json')) yield { path, text: text ?? JSON.stringify(json) };
  }
}

function isCapture(value: unknown): value is Omit<Capture, 'path'> {
  if (typeof value !== 'object' || value === null) return false;
  return 'method' in value && 'request' in value && 'grpcStatus' in value && 'channel' in value;
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
    if (isCapture(value)) captures.push({ ...value, path: file.path });
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
