import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connectionProblems } from './connections.ts';
import { type RecordedConnection, readRecordings, type Recordings } from './recordings.ts';

const all = readRecordings(join(import.meta.dirname, '../../../../testdata/captures.ndjson.br'));
const SCENARIO = 'handlers/v1.3.1/grace-expired';

/** One scenario with its two recorded connections. */
function scenario(change: (connection: RecordedConnection) => RecordedConnection): Recordings {
  return {
    ...all,
    captures: all.captures.filter(({ path }) => path.startsWith(`${SCENARIO}/`)),
    connections: all.connections.filter(({ folder }) => folder === SCENARIO).map(change),
    frames: all.frames.filter(({ folder }) => folder === SCENARIO),
  };
}

const told = (change: (bytes: Buffer) => Buffer): string =>
  connectionProblems(scenario((one) => ({ ...one, bytes: change(Buffer.from(one.bytes)) })))
    .map(({ path, problem }) => `${path}: ${problem}`)
    .join('\n');

function replaced(bytes: Buffer, text: string, replacement: string): Buffer {
  const at = bytes.indexOf(text);
  if (at > 0) bytes.write(replacement, at, 'latin1');
  return bytes;
}

test('recorded connections hold the calls and frames that were recorded one by one', () => {
  expect(all.connections.length).toBeGreaterThan(10);
  expect(all.frames.length).toBeGreaterThan(30);
  expect(connectionProblems(all)).toEqual([]);
});

test.each<[string, (bytes: Buffer) => Buffer, RegExp]>([
  [
    'that is cut within a frame',
    (bytes) => bytes.subarray(0, bytes.length - 3),
    /cmd-conn1\.bin: it ends within a frame/,
  ],
  ['that lacks its last calls', (bytes) => bytes.subarray(0, bytes.length >> 1), /\d+ calls, and \d+ are recorded/],
  [
    'with another document',
    (bytes) => replaced(bytes, '{"metadata"', '{"Metadata"'),
    /its message is not the recorded one/,
  ],
  ['of another protocol', (bytes) => Buffer.concat([Buffer.from('GET '), bytes]), /does not begin as HTTP\/2 does/],
  ['with a frame of no length', (bytes) => bytes.fill(0xff, 24, 27), /byte 24: a frame of 16777215 bytes/],
  ['with a header block that is none', (bytes) => bytes.fill(0xff, 60, 64), /cmd-conn1\.bin: (a header block|byte|it)/],
])('a connection is reported %s', (_title, change, text) => {
  expect(told(change)).toMatch(text);
});

test('frames that are not those of the bytes beside them are reported', () => {
  const changed = scenario((one) => one);
  const frames = changed.frames.map((one) => ({
    ...one,
    frames: one.frames.map((frame) => (frame['frame'] === 'PING' ? { ...frame, length: 9 } : frame)),
  }));
  const problems = connectionProblems({ ...changed, frames }).map(({ problem }) => problem);
  expect(problems).toContainEqual(expect.stringMatching(/^frame \d+ is not the one of .*cmd-conn1\.bin$/));
});

test('a client that changes its authority is reported', () => {
  const changed = scenario((one) => one);
  const captures = changed.captures.map((capture) => ({ ...capture, requestMetadata: { ':authority': ['/a.sock'] } }));
  const problems = connectionProblems({ ...changed, captures }).map(({ problem }) => problem);
  expect(problems).toContainEqual(expect.stringContaining('its authority is localhost, not /a.sock'));
});

test('a connection whose calls nobody recorded is reported', () => {
  const strange = scenario((one) => ({ ...one, connection: 9 }));
  const problems = connectionProblems(strange).map(({ problem }) => problem);
  expect(problems).toContainEqual(expect.stringMatching(/^it has \d+ calls, and 0 are recorded$/));
});
