import { basename, dirname, join } from 'node:path';
import { type Capture, isObject, NUMBERED } from './captures.ts';

/** What an `index.json` says of its folder. */
export interface FolderIndex {
  readonly path: string;
  readonly release: string | undefined;
  /** The list of messages as it stands; undefined for an index of something else. */
  readonly messages: readonly unknown[] | undefined;
  /** Files below the folder that hold connections, where the recorder listed them. */
  readonly connections: readonly unknown[];
}

/** Reads an index; one of something else has no messages. */
export function readFolderIndex(path: string, value: unknown): FolderIndex {
  const { release, messages, connections } = isObject(value) ? value : {};
  return {
    path,
    release: typeof release === 'string' ? release : undefined,
    messages: Array.isArray(messages) ? messages : undefined,
    connections: Array.isArray(connections) ? connections : [],
  };
}

const numberOf = (name: string): number => Number.parseInt(name, 10);

/**
 * What an index says and its folder does not, and the other way round.
 *
 * @param paths all files that were found.
 * @param captures the recorded calls among them that can be read.
 */
export function folderIndexProblems(
  index: FolderIndex,
  paths: ReadonlySet<string>,
  captures: readonly Capture[],
): readonly string[] {
  const folder = dirname(index.path);
  const recorded = [...paths]
    .filter((path) => dirname(path) === folder && NUMBERED.test(path))
    .map((path) => basename(path));
  if (index.messages === undefined) return recorded.length === 0 ? [] : ['it lists no messages'];
  const names = index.messages.map((message) => (isObject(message) ? message['file'] : undefined));
  const files = names.filter((name) => typeof name === 'string');
  const listed = new Set(files);
  const isMissing = (name: string): boolean => !paths.has(join(folder, name));
  const others = captures.filter(
    ({ path, release }) => dirname(path) === folder && release !== '' && release !== index.release,
  );
  return [
    ...names.flatMap((name, i) => (typeof name === 'string' ? [] : [`its message ${i + 1} names no file`])),
    ...[...listed].filter(isMissing).map((name) => `lists ${name}, which is not there`),
    ...index.connections.flatMap((name) =>
      typeof name !== 'string' || isMissing(name) ? [`lists ${String(name)}, which is not there`] : [],
    ),
    ...recorded.filter((name) => !listed.has(name)).map((name) => `does not list ${name}`),
    ...orderProblems(files),
    ...(index.release === undefined
      ? []
      : others.map(({ path, release }) => `is of ${index.release ?? ''}, and ${basename(path)} is of ${release}`)),
  ];
}

/** Calls are listed once, in the order in which they were sent, which their numbers tell. */
function orderProblems(files: readonly string[]): readonly string[] {
  return files.slice(1).flatMap((name, i) => {
    const before = files[i] ?? '';
    if (name === before) return [`lists ${name} twice`];
    return numberOf(name) < numberOf(before) ? [`lists ${name} after ${before}`] : [];
  });
}

/** Folders of recorded calls without an index. */
export interface FoldersWithoutIndex {
  /** Whole recordings, told by what else a recorder writes, or by calls that are numbered from 1 on without a gap. */
  readonly recordings: readonly string[];
  /** Folders of some calls: nobody can say whether others are missing. */
  readonly selections: readonly string[];
}

/** Finds the folders whose calls no index lists. @param paths all files that were found. */
export function foldersWithoutIndex(paths: ReadonlySet<string>): FoldersWithoutIndex {
  const calls = Map.groupBy(
    [...paths].filter((path) => NUMBERED.test(path)),
    (path) => dirname(path),
  );
  const isRecording = (folder: string): boolean =>
    paths.has(join(folder, 'timeline.json')) ||
    [...paths].some((path) => dirname(path) === join(folder, 'connections') && path.endsWith('.bin')) ||
    isGapless((calls.get(folder) ?? []).map((path) => numberOf(basename(path))));
  const missing = [...calls.keys()].filter((folder) => !paths.has(join(folder, 'index.json')));
  return {
    recordings: missing.filter(isRecording),
    selections: missing.filter((folder) => !isRecording(folder)),
  };
}

/** A single call is one that somebody picked. */
const isGapless = (numbers: readonly number[]): boolean =>
  numbers.length > 1 && numbers.toSorted((a, b) => a - b).every((number, i) => number === i + 1);
