import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { type Sender } from '../connection/frames.ts';
import { CompatError } from '../errors.ts';
import { type Capture, isMeantAsCapture, isObject, readCapture } from './captures.ts';
import { type FolderIndex, folderIndexProblems, foldersWithoutIndex, readFolderIndex } from './folder-index.ts';

/** A JSON document of a folder of samples. */
export interface SampleDocument {
  readonly path: string;
  readonly text: string;
}

/** The bytes that one side sent on a recorded connection. */
export interface RecordedConnection {
  readonly path: string;
  /** The folder of the scenario. */
  readonly folder: string;
  readonly channel: 'cmd' | 'notify';
  readonly connection: number;
  readonly sender: Sender;
  readonly bytes: Buffer;
}

/** The frames that the client sent on a recorded connection, as the recorder saw them. */
export interface RecordedFrames extends Omit<RecordedConnection, 'sender' | 'bytes'> {
  readonly frames: readonly Readonly<Record<string, unknown>>[];
}

/** A file that cannot be read, or is not what it should be. */
export interface Flaw {
  readonly path: string;
  readonly problem: string;
}

/** What a folder holds that can be replayed. */
export interface Recordings {
  readonly captures: readonly Capture[];
  readonly samples: readonly SampleDocument[];
  readonly connections: readonly RecordedConnection[];
  readonly frames: readonly RecordedFrames[];
  readonly flaws: readonly Flaw[];
  /** Folders of calls that somebody picked: no index says whether all are there. */
  readonly selections: readonly string[];
}

interface File {
  readonly path: string;
  readonly bytes: () => Buffer;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer I)[] ? I[] : T[K] };

/** Names of documents that KubeVirt's encoder printed. */
const SAMPLE = /(^|\/)(domain-\w+|libvirt-domain|domainstats-\w+|migrationoptions-\w+|guestinfo-\w+|users-\w+)\.json$/;
const CONNECTION = /(?:^|\/)connections\/(cmd|notify)-conn(\d+)(\.server)?\.(bin|frames\.json)$/;
/** No recording of one message or connection comes near. */
const MAX_FILE_BYTES = 128 * 1_048_576;

function* readFolder(root: string): Generator<File> {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && /\.(json|bin)$/.test(entry.name));
  for (const file of files.map((entry) => join(entry.parentPath, entry.name)).sort()) {
    yield { path: relative(root, file), bytes: () => readLimited(file) };
  }
}

function readLimited(file: string): Buffer {
  const { size } = statSync(file);
  if (size > MAX_FILE_BYTES) throw new CompatError('DecodeFailed', `it has ${size} bytes, over ${MAX_FILE_BYTES}`);
  return readFileSync(file);
}

function unpack(file: string): string {
  try {
    return brotliDecompressSync(readFileSync(file)).toString('utf8');
  } catch (caught) {
    throw new CompatError('BadOption', `${file} is no .ndjson.br bundle: name a folder of captures, or such a bundle`, {
      cause: caught,
    });
  }
}

interface BundleLine {
  readonly path: string;
  readonly json?: unknown;
  readonly text?: string;
  readonly latin1?: string;
}

function* readBundle(file: string): Generator<File> {
  for (const [index, line] of unpack(file).trimEnd().split('\n').entries()) {
    const entry = parseLine(line);
    if (entry === undefined) yield { path: `line ${index + 1}.json`, bytes: () => Buffer.from(line) };
    else if (/\.(json|bin)$/.test(entry.path)) yield { path: entry.path, bytes: () => contentOf(entry) };
  }
}

function parseLine(line: string): BundleLine | undefined {
  try {
    const entry = JSON.parse(line) as BundleLine | null;
    return typeof entry?.path === 'string' ? entry : undefined;
  } catch {
    return undefined;
  }
}

function contentOf({ json, text, latin1 }: BundleLine): Buffer {
  if (latin1 !== undefined) return Buffer.from(latin1, 'latin1');
  return Buffer.from(text ?? JSON.stringify(json));
}

/**
 * Reads a folder in the format of KubeVirt captures or samples, or a `.ndjson.br` bundle of one. Files that are neither
 * are skipped; those that are broken are listed.
 *
 * @throws {CompatError} `BadOption` when there is nothing to replay.
 */
export function readRecordings(path: string): Recordings {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  if (isFolder === undefined) throw new CompatError('BadOption', `${path} does not exist`);
  const found: Mutable<Recordings> = {
    captures: [],
    samples: [],
    connections: [],
    frames: [],
    flaws: [],
    selections: [],
  };
  const indexes: FolderIndex[] = [];
  const paths = new Set<string>();
  for (const file of isFolder ? readFolder(path) : readBundle(path)) {
    paths.add(file.path);
    try {
      const index = take(file, found);
      if (index !== undefined) indexes.push(index);
    } catch (caught) {
      found.flaws.push({ path: file.path, problem: caught instanceof Error ? caught.message : String(caught) });
    }
  }
  for (const index of indexes) {
    const problems = folderIndexProblems(index, paths, found.captures);
    found.flaws.push(...problems.map((problem) => ({ path: index.path, problem })));
  }
  const { recordings, selections } = foldersWithoutIndex(paths);
  for (const folder of recordings) {
    found.flaws.push({ path: join(folder, 'index.json'), problem: 'is not there, beside the recorded calls' });
  }
  found.selections.push(...selections);
  if (Object.values(found).every((list) => list.length === 0)) {
    throw new CompatError('BadOption', `${path} holds no recorded message and no sample`);
  }
  return found;
}

/** Sorts a file in. @returns what it says of its folder, for an index. @throws {CompatError} `DecodeFailed` for a broken file. */
function take(file: File, found: Mutable<Recordings>): FolderIndex | undefined {
  const { path } = file;
  const [, channel, number, server, kind] = CONNECTION.exec(path) ?? [];
  const place = {
    ...{ path, folder: dirname(dirname(path)), connection: Number(number) },
    channel: channel === 'notify' ? ('notify' as const) : ('cmd' as const),
  };
  if (kind === 'bin') {
    found.connections.push({ ...place, sender: server === undefined ? 'client' : 'server', bytes: file.bytes() });
    return undefined;
  }
  if (path.endsWith('.bin')) return undefined;
  const text = file.bytes().toString('utf8');
  const value = parse(text);
  if (kind !== undefined) {
    found.frames.push({ ...place, frames: framesOf(value) });
  } else if (basename(path) === 'index.json') return readFolderIndex(path, value);
  else if (isMeantAsCapture(path, value)) {
    const capture = readCapture(path, value);
    if (typeof capture === 'string') throw new CompatError('DecodeFailed', capture);
    found.captures.push(capture);
  } else if (SAMPLE.test(path)) found.samples.push({ path, text });
  return undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (caught) {
    throw new CompatError('DecodeFailed', `is no JSON: ${String(caught)}`, { cause: caught });
  }
}

function framesOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (Array.isArray(value) && value.every((frame) => isObject(frame) && typeof frame['frame'] === 'string')) {
    return value as readonly Readonly<Record<string, unknown>>[];
  }
  throw new CompatError('DecodeFailed', 'is no list of frames');
}
