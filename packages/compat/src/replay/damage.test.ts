import { BinaryReader, BinaryWriter, type WireType } from '@bufbuild/protobuf/wire';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Capture, RecordedMessage } from './captures.ts';
import { readRecordings } from './recordings.ts';
import { recordProblems } from './records.ts';

const { captures } = readRecordings(join(import.meta.dirname, '../../../../testdata/captures.ndjson.br'));
const lifecycle = captures.filter(({ path }) => path.startsWith('v1.0.1/lifecycle/'));

interface Field {
  readonly number: number;
  readonly wireType: WireType;
  readonly raw: Buffer;
}

function fieldsOf(bytes: Buffer): readonly Field[] {
  const reader = new BinaryReader(bytes);
  const fields: Field[] = [];
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const start = reader.pos;
    reader.skip(wireType, number);
    fields.push({ number, wireType, raw: bytes.subarray(start, reader.pos) });
  }
  return fields;
}

const render = (fields: readonly Field[]): Buffer =>
  Buffer.concat(
    fields.flatMap(({ number, wireType, raw }) => [new BinaryWriter().tag(number, wireType).finish(), raw]),
  );

const renumbered = (by: number) => (bytes: Buffer) => {
  const [first, ...rest] = fieldsOf(bytes);
  return first === undefined ? bytes : render([{ ...first, number: first.number + by }, ...rest]);
};

function changed(bytes: Buffer, part: number, change: (byte: number) => number): Buffer {
  const copy = Buffer.from(bytes);
  const at = Math.floor(copy.length * part);
  if (at < copy.length) copy[at] = change(copy[at] ?? 0);
  return copy;
}

function withKey(bytes: Buffer, change: (letter: string) => string): Buffer {
  const text = bytes.toString('latin1');
  return Buffer.from(
    text.replace(/"([A-Za-z])(\w+)":/, (_, a: string, b: string) => `"${change(a)}${b}":`),
    'latin1',
  );
}

const swapCase = (letter: string): string =>
  letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase();

/** Damage that shows although the record holds nothing but the bytes. */
const VISIBLE: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'its first field is renumbered': renumbered(1),
  'its first field has a number of no release': renumbered(70),
  'its first field is gone': (bytes) => render(fieldsOf(bytes).slice(1)),
  'it is cut in half': (bytes) => bytes.subarray(0, bytes.length >> 1),
  'bytes are appended': (bytes) => Buffer.concat([bytes, Buffer.of(1, 2, 3)]),
  'its first byte is flipped': (bytes) => changed(bytes, 0, (byte) => byte ^ 0x08),
  'a byte is no UTF-8 any more': (bytes) => changed(bytes, 0.6, (byte) => byte ^ 0x80),
  'a key of its JSON has another case': (bytes) => withKey(bytes, swapCase),
};

const bare = ({ type, base64 }: RecordedMessage, bytes?: Buffer): RecordedMessage => ({
  type,
  base64: bytes?.toString('base64') ?? base64,
});

/** The record with one message damaged, all without the JSON beside the bytes. */
function damaged(
  capture: Capture,
  side: 'request' | 'response',
  damage: (bytes: Buffer) => Buffer,
): Capture | undefined {
  const message = capture[side];
  if (message === undefined) return undefined;
  const before = Buffer.from(message.base64, 'base64');
  const after = damage(before);
  if (after.equals(before)) return undefined;
  const response = capture.response && { response: bare(capture.response) };
  return { ...capture, request: bare(capture.request), ...response, [side]: bare(message, after) };
}

/** Calls whose request or answer is more than a few numbers, one for each method. */
const ONE_OF_EACH = [
  ...new Map(lifecycle.filter(({ grpcStatus }) => grpcStatus.code === 0).map((one) => [one.method, one])).values(),
];

/** Calls with the whole VMI: what is spelled elsewhere is seen by comparison. */
const SYNCS = lifecycle.filter(({ method }) => method.endsWith('/SyncVirtualMachine')).slice(0, 3);

describe.each(['request', 'response'] as const)('a %s without JSON beside it', (side) => {
  test.each(Object.entries(VISIBLE))('is reported when %s', (_title, damage) => {
    const made = ONE_OF_EACH.map((capture) => damaged(capture, side, damage)).filter((one) => one !== undefined);
    expect(made.length).toBeGreaterThan(side === 'request' ? 5 : 2);
    const missed = made.filter((capture) => {
      const others = lifecycle.filter(({ method, path }) => method === capture.method && path !== capture.path);
      return !recordProblems([capture, ...others.slice(-2), ...SYNCS]).some(({ path }) => path === capture.path);
    });
    expect(missed.map(({ path }) => path)).toEqual([]);
  });
});

test('records without JSON beside their bytes are fine as they are', () => {
  const stripped = captures.map((capture) => ({
    ...capture,
    request: capture.scenario === 'malformed-requests' ? capture.request : bare(capture.request),
    ...(capture.response && { response: bare(capture.response) }),
  }));
  const known = new Set(['v1.9.0/notify-server']);
  const problems = recordProblems(stripped).filter(({ path }) => !known.has(path.slice(0, path.lastIndexOf('/'))));
  expect(problems).toEqual([]);
});

test.each<[string, Partial<Capture>, string]>([
  ['of another method', { method: '/kubevirt.cmd.v1.Cmd/GetUsers' }, 'stands where'],
  ['refused as not implemented', { grpcStatus: { code: 12, message: '' } }, 'code 12, and v1.0.1 has this RPC'],
  ['of a client of another age', { requestMetadata: { ':authority': ['a/b'] } }, 'neither localhost nor a socket'],
])('a call is reported that is %s', (_title, change, text) => {
  const [capture] = lifecycle.filter(({ method }) => method.endsWith('/PauseVirtualMachine'));
  if (capture === undefined) throw new Error('the test data holds no such call');
  const problems = recordProblems([{ ...capture, ...change }]).map(({ problem }) => problem);
  expect(problems.join('\n')).toContain(text);
});

test('an answer is reported to an RPC that the release does not have', () => {
  const capture = captures.find(({ path }) => path.startsWith('v1.9.0/') && path.includes('ResetVirtualMachine'));
  if (capture === undefined) throw new Error('the test data holds no such call');
  const problems = recordProblems([{ ...capture, release: 'v1.4.0' }]).map(({ problem }) => problem);
  expect(problems).toEqual(['it is answered, and v1.4.0 does not have this RPC']);
});
