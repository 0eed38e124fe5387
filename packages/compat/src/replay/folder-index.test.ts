import { expect, test } from 'vitest';
import { folderIndexProblems, foldersWithoutIndex, readFolderIndex } from './folder-index.ts';
import type { Capture } from './captures.ts';

const FILES = ['001-Info.json', '002-Ping.json', '003-notify-Info.json'];
const paths = new Set([...FILES, 'connections/cmd-conn1.bin', 'vmi-final.json'].map((name) => `v1.6.6/life/${name}`));
const captures = FILES.map((name) => ({ path: `v1.6.6/life/${name}`, release: 'v1.6.6' }) as Capture);

const problemsOf = (index: unknown): readonly string[] =>
  folderIndexProblems(readFolderIndex('v1.6.6/life/index.json', index), paths, captures);

const listing = (...files: readonly unknown[]): object => ({
  release: 'v1.6.6',
  messages: files.map((file) => ({ file })),
});

test('an index that lists every call once and in order has no problem, nor has one of something else', () => {
  expect(problemsOf({ ...listing(...FILES), connections: ['connections/cmd-conn1.bin'] })).toEqual([]);
  expect(folderIndexProblems(readFolderIndex('notes/index.json', { chapters: [] }), paths, captures)).toEqual([]);
});

test.each<[string, unknown, string]>([
  ['lists nothing', {}, 'it lists no messages'],
  ['is no object', 7, 'it lists no messages'],
  ['lists a call that is gone', listing(...FILES, '004-Ping.json'), 'lists 004-Ping.json, which is not there'],
  ['lacks a call', listing('001-Info.json', '003-notify-Info.json'), 'does not list 002-Ping.json'],
  ['names no file', listing(...FILES, null), 'its message 4 names no file'],
  ['lists a call twice', listing('001-Info.json', ...FILES), 'lists 001-Info.json twice'],
  [
    'has another order',
    listing('002-Ping.json', '001-Info.json', '003-notify-Info.json'),
    'lists 001-Info.json after 002-Ping.json',
  ],
  [
    'lists a connection that is gone',
    { ...listing(...FILES), connections: ['connections/cmd-conn2.bin'] },
    'lists connections/cmd-conn2.bin, which is not there',
  ],
  [
    'is of another release',
    { ...listing(...FILES), release: 'v1.5.0' },
    'is of v1.5.0, and 001-Info.json is of v1.6.6',
  ],
])('an index that %s is reported', (_title, index, problem) => {
  expect(problemsOf(index)[0]).toBe(problem);
});

const without = (...files: readonly string[]) => foldersWithoutIndex(new Set(files));

test('a recording whose index is gone is reported, told by what else is there or by its numbers', () => {
  const gone = { recordings: ['a'], selections: [] };
  expect(foldersWithoutIndex(paths)).toEqual({ recordings: ['v1.6.6/life'], selections: [] });
  expect(without('a/001-Ping.json', 'a/timeline.json')).toEqual(gone);
  expect(without('a/002-Ping.json', 'a/001-Info.json')).toEqual(gone);
  expect(
    without('a/999-Ping.json', ...Array.from({ length: 998 }, (_, i) => `a/${String(i + 1).padStart(3, '0')}-P.json`)),
  ).toEqual(gone);
});

test.each<[what: string, files: readonly string[]]>([
  ['one call', ['a/001-Ping.json']],
  ['calls with a gap', ['a/001-Info.json', 'a/003-Ping.json']],
  ['later calls', ['a/002-Info.json', 'a/003-Ping.json']],
  ['calls beside a recording', ['a/007-Ping.json', 'b/timeline.json']],
])('%s without an index are a selection that somebody made', (_what, files) => {
  expect(without(...files)).toEqual({ recordings: [], selections: ['a'] });
});

test('a folder with its index is neither, nor is one without calls', () => {
  const none = { recordings: [], selections: [] };
  expect(without('a/001-Ping.json', 'a/timeline.json', 'a/index.json')).toEqual(none);
  expect(without('001-Ping.json', '002-Ping.json', 'index.json', 'connections/cmd-conn1.bin')).toEqual(none);
  expect(without('a/domain-running.json')).toEqual(none);
});
