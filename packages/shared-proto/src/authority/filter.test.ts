import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { cutAt, frame, splitFrames } from '../testing/frames.ts';
import { huffmanString, indexed, literal, rawString, sizeUpdate } from '../testing/hpack-encoder.ts';
import { AuthorityFilter, HeaderLimitError, MAX_HEADER_BLOCK_BYTES } from './filter.ts';
import { CLIENT_PREFACE, CONTINUATION, HEADERS, MAX_FRAME_BYTES } from './frames.ts';
import { type Header, HpackDecoder } from './hpack.ts';

const END_STREAM = 0x1;
const END_HEADERS = 0x4;
const PADDED = 0x8;
const PRIORITY = 0x20;
const SETTINGS = frame(4, 0, 0, Buffer.alloc(0));
const OLD_PATH = '/var/run/kubevirt/domain-notify-pipe.sock';
const POST = indexed(3);
const HTTP = indexed(6);
const path = (text: string): readonly number[] => literal(0x40, 4, rawString(text));

function run(chunks: readonly Buffer[]): { out: Buffer; isTransparent: boolean } {
  const filter = new AuthorityFilter();
  const parts = chunks.flatMap((chunk) => filter.push(chunk));
  const { isTransparent } = filter;
  return { out: Buffer.concat([...parts, ...filter.end()]), isTransparent };
}

/** Decodes the header blocks of a filtered connection with a decoder of its own, as the server would. */
function requestsOf(out: Buffer): readonly (readonly Header[])[] {
  const decoder = new HpackDecoder(1_000_000);
  const blocks: Buffer[][] = [];
  for (const { type, payload } of splitFrames(out.subarray(CLIENT_PREFACE.length))) {
    if (type === HEADERS) blocks.push([payload]);
    if (type === CONTINUATION) blocks.at(-1)?.push(payload);
  }
  return blocks.map((parts) => decoder.decode(Buffer.concat(parts)));
}

const valuesOf = (headers: readonly Header[] | undefined, name: string): string[] =>
  (headers ?? []).filter((header) => header.name === name).map((header) => header.value);

function connection(...frames: readonly Buffer[]): Buffer {
  return Buffer.concat([CLIENT_PREFACE, SETTINGS, ...frames]);
}

const request = (streamId: number, ...block: readonly (readonly number[])[]): Buffer =>
  frame(HEADERS, END_HEADERS, streamId, Buffer.from(block.flat()));

describe('FM-1.1 authority header from old Go clients', () => {
  test.each<[string, readonly number[]]>([
    ['a raw literal', literal(0x40, 1, rawString(OLD_PATH))],
    ['a Huffman literal', literal(0x40, 1, huffmanString(OLD_PATH))],
    ['a literal that is not indexed', literal(0x00, 1, rawString(OLD_PATH))],
    ['a literal that is never indexed', literal(0x10, 1, huffmanString(OLD_PATH))],
    ['a literal that spells the name', literal(0x40, rawString(':authority'), rawString(OLD_PATH))],
    ['a path with a doubled first slash', literal(0x40, 1, rawString(`/${OLD_PATH}`))],
    ['an empty authority', literal(0x00, 1, rawString(''))],
    ['the empty authority of the static table', indexed(1)],
    ['no authority at all', []],
    ['bytes that no host has', literal(0x40, 1, rawString('a b\u0000\u00ff'))],
  ])('replaces %s', (_what, authority) => {
    const { out, isTransparent } = run([connection(request(1, POST, HTTP, path('/a'), authority))]);
    const [headers] = requestsOf(out);
    expect(valuesOf(headers, ':authority')).toEqual(['localhost']);
    expect(valuesOf(headers, ':path')).toEqual(['/a']);
    expect(isTransparent).toBe(false);
  });

  test('keeps the tables in step: a later request refers to the indexed path and authority', () => {
    const first = request(1, POST, HTTP, path('/a'), literal(0x40, 1, huffmanString(OLD_PATH)));
    const second = request(3, POST, HTTP, indexed(63), indexed(62), literal(0x40, rawString('x'), rawString('y')));
    const third = request(5, sizeUpdate(0), POST, HTTP, path('/b'), literal(0x40, 1, rawString(OLD_PATH)));
    const requests = requestsOf(run([connection(first, second, third)]).out);
    expect(requests.map((headers) => valuesOf(headers, ':path'))).toEqual([['/a'], ['/a'], ['/b']]);
    expect(requests.map((headers) => valuesOf(headers, ':authority'))).toEqual(Array(3).fill(['localhost']));
    expect(valuesOf(requests[1], 'x')).toEqual(['y']);
  });

  test('a connection whose first request is valid passes untouched from then on', () => {
    const good = request(1, POST, HTTP, path('/a'), literal(0x40, 1, rawString('localhost')));
    const bad = request(3, POST, HTTP, indexed(63), literal(0x40, 1, rawString(OLD_PATH)));
    const bytes = connection(good, bad);
    const { out, isTransparent } = run([bytes]);
    expect(out).toEqual(bytes);
    expect(isTransparent).toBe(true);
  });

  test('takes padding off and keeps priority, END_STREAM and the order of the headers', () => {
    const block = Buffer.from([...POST, ...literal(0x40, 1, rawString(OLD_PATH)), ...HTTP, ...path('/a')]);
    const priority = Buffer.from('8000000310', 'hex');
    const payload = Buffer.concat([Buffer.of(7), priority, block, Buffer.alloc(7)]);
    const { out } = run([connection(frame(HEADERS, END_HEADERS | END_STREAM | PADDED | PRIORITY, 1, payload))]);
    const headersFrame = splitFrames(out.subarray(CLIENT_PREFACE.length)).find(({ type }) => type === HEADERS);
    expect(headersFrame?.flags).toBe(END_HEADERS | END_STREAM | PRIORITY);
    expect(headersFrame?.payload.subarray(0, 5)).toEqual(priority);
    const headers = new HpackDecoder(10_000).decode(headersFrame?.payload.subarray(5) ?? Buffer.alloc(0));
    expect(headers.map(({ name }) => name)).toEqual([':method', ':authority', ':scheme', ':path']);
  });

  test('joins CONTINUATION frames and splits a long block again', () => {
    const long = literal(0x00, rawString('long'), rawString('v'.repeat(40_000)));
    const block = Buffer.from([...POST, ...HTTP, ...path('/a'), ...literal(0x40, 1, rawString(OLD_PATH)), ...long]);
    const third = Math.ceil(block.length / 3);
    const bytes = connection(
      frame(HEADERS, END_STREAM, 1, block.subarray(0, third)),
      frame(CONTINUATION, 0, 1, block.subarray(third, 2 * third)),
      frame(CONTINUATION, END_HEADERS, 1, block.subarray(2 * third)),
    );
    const { out } = run([bytes]);
    const headerFrames = splitFrames(out.subarray(CLIENT_PREFACE.length)).slice(1);
    expect(headerFrames.map(({ type }) => type)).toEqual([HEADERS, CONTINUATION, CONTINUATION]);
    expect(headerFrames.map(({ flags }) => flags)).toEqual([END_STREAM, 0, END_HEADERS]);
    expect(Math.max(...headerFrames.map(({ length }) => length))).toBeLessThanOrEqual(MAX_FRAME_BYTES);
    expect(valuesOf(requestsOf(out)[0], 'long')).toEqual(['v'.repeat(40_000)]);
    expect(valuesOf(requestsOf(out)[0], ':authority')).toEqual(['localhost']);
  });

  test('keeps the mark of headers that must never be indexed', () => {
    const secret = literal(0x10, rawString('token'), rawString('s'));
    const { out } = run([connection(request(1, POST, literal(0x40, 1, rawString(OLD_PATH)), secret))]);
    expect(requestsOf(out)[0]?.find(({ name }) => name === 'token')?.neverIndexed).toBe(true);
  });

  test('replaces a host header that the server would refuse', () => {
    const { out } = run([connection(request(1, POST, literal(0x00, rawString('host'), rawString(OLD_PATH))))]);
    expect(valuesOf(requestsOf(out)[0], 'host')).toEqual(['localhost']);
  });

  test('adds no authority to trailers', () => {
    const trailers = frame(
      HEADERS,
      END_HEADERS | END_STREAM,
      1,
      Buffer.from(literal(0x00, rawString('t'), rawString('1'))),
    );
    const { out } = run([connection(request(1, POST, literal(0x40, 1, rawString(OLD_PATH))), trailers)]);
    expect(requestsOf(out)[1]?.map(({ name }) => name)).toEqual(['t']);
  });

  test('leaves frames that carry no headers alone', () => {
    const others = [
      frame(8, 0, 0, Buffer.from('00001000', 'hex')),
      frame(0, 0, 1, Buffer.alloc(50_000, 7)),
      frame(0xfa, 3, 9, Buffer.from('x')),
    ];
    const { out } = run([connection(...others, request(1, POST, literal(0x40, 1, rawString(OLD_PATH))), ...others)]);
    const passed = splitFrames(out.subarray(CLIENT_PREFACE.length)).filter(({ type }) => type !== HEADERS);
    expect(passed.map(({ type, length }) => [type, length])).toEqual([
      [4, 0],
      [8, 4],
      [0, 50_000],
      [0xfa, 1],
      [8, 4],
      [0, 50_000],
      [0xfa, 1],
    ]);
  });
});

describe('FM-13.7 limits of a header block', () => {
  const endless = frame(CONTINUATION, 0, 1, Buffer.alloc(MAX_FRAME_BYTES));

  test('ends a connection whose header block is over 64 KiB', () => {
    const filter = new AuthorityFilter();
    filter.push(connection(frame(HEADERS, 0, 1, Buffer.alloc(10))));
    expect(() => Array.from({ length: 5 }, () => filter.push(endless))).toThrow(HeaderLimitError);
  });

  test('ends a connection that sends empty CONTINUATION frames for ever', () => {
    const filter = new AuthorityFilter();
    filter.push(connection(frame(HEADERS, 0, 1, Buffer.alloc(10))));
    const empty = frame(CONTINUATION, 0, 1, Buffer.alloc(0));
    const push = (): void =>
      Array.from({ length: MAX_HEADER_BLOCK_BYTES / empty.length + 1 }, () => filter.push(empty)).forEach(
        () => undefined,
      );
    expect(push).toThrow(HeaderLimitError);
  });
});

describe('what is not HTTP/2, or breaks it, is left to the server as it came', () => {
  const open = frame(HEADERS, 0, 1, Buffer.from(POST));
  test.each<[string, Buffer]>([
    ['another protocol', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['half a preface', CLIENT_PREFACE.subarray(0, 10)],
    ['half a frame header', connection(Buffer.from([0, 0, 9]))],
    ['half a header frame', connection(request(1, POST, literal(0x40, 1, rawString(OLD_PATH))).subarray(0, 20))],
    [
      'a frame inside a header block',
      connection(open, SETTINGS, frame(CONTINUATION, END_HEADERS, 1, Buffer.from(HTTP))),
    ],
    ['a continuation of another stream', connection(open, frame(CONTINUATION, END_HEADERS, 3, Buffer.from(HTTP)))],
    ['a second header frame inside a block', connection(open, open)],
    ['a header frame over the frame limit', connection(frame(HEADERS, END_HEADERS, 1, Buffer.alloc(20_000)))],
    ['padding larger than the frame', connection(frame(HEADERS, END_HEADERS | PADDED, 1, Buffer.of(200, 1, 2)))],
    ['priority larger than the frame', connection(frame(HEADERS, END_HEADERS | PRIORITY, 1, Buffer.of(1, 2)))],
    ['an empty padded frame', connection(frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 1, Buffer.alloc(0)))],
    ['a block that breaks HPACK', connection(request(1, indexed(70)))],
    ['a first block that is no request', connection(request(1, literal(0x00, rawString('a'), rawString('b'))))],
  ])('%s', (_what, bytes) => {
    expect(run([bytes]).out).toEqual(bytes);
  });
});

const recorded = (release: string): Buffer =>
  readFileSync(join(import.meta.dirname, `../../testdata/${release}/cmd-client.bin`));

describe('recorded peers', () => {
  test('every request of a v1.0 client gets an authority that the server takes', () => {
    const requests = requestsOf(run([recorded('v1.0.1')]).out);
    expect(requests.map((headers) => valuesOf(headers, ':authority'))).toEqual(Array(6).fill(['localhost']));
    expect(requests.map((headers) => valuesOf(headers, ':path')[0])).toEqual([
      '/kubevirt.cmd.info.CmdInfo/Info',
      ...['Ping', 'Ping', 'GetDomain', 'NoSuch', 'Ping'].map((rpc) => `/kubevirt.cmd.v1.Cmd/${rpc}`),
    ]);
  });

  test.each(['v1.3.1', 'v1.6.6'])('the bytes of a %s handler pass untouched', (release) => {
    expect(run([recorded(release)]).out).toEqual(recorded(release));
  });
});

describe('fuzz', () => {
  const places = fc.array(fc.nat(), { maxLength: 40 });
  const flip = fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) });

  test('the result does not depend on how the bytes are cut', () => {
    const bytes = recorded('v1.0.1');
    const whole = run([bytes]).out;
    fc.assert(
      fc.property(places, (cuts) => {
        expect(run(cutAt(bytes, cuts)).out).toEqual(whole);
      }),
    );
    expect(run(Array.from(bytes, (byte) => Buffer.of(byte))).out).toEqual(whole);
  });

  test('random frames after the preface never crash it, and a limit is all it complains about', () => {
    const anyFrame = fc.record({
      type: fc.constantFrom(0, HEADERS, 2, 4, 8, CONTINUATION, 0x77),
      flags: fc.integer({ min: 0, max: 255 }),
      streamId: fc.constantFrom(0, 1, 1, 3, 2 ** 31 - 1),
      payload: fc.uint8Array({ maxLength: 64 }),
    });
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 20 }), places, (frames, cuts) => {
        const bytes = connection(...frames.map((f) => frame(f.type, f.flags, f.streamId, f.payload)));
        const { out } = run(cutAt(bytes, cuts));
        expect(out.length).toBeGreaterThanOrEqual(CLIENT_PREFACE.length);
      }),
      { numRuns: 1_000 },
    );
  });

  test('a recorded connection with any bytes changed is passed on, rewritten or ended', () => {
    fc.assert(
      fc.property(fc.array(flip, { minLength: 1, maxLength: 8 }), (flips) => {
        const bytes = Buffer.from(recorded('v1.0.1'));
        for (const { at, to } of flips) bytes[at % bytes.length] = to;
        try {
          run([bytes]);
        } catch (caught) {
          expect(caught).toBeInstanceOf(HeaderLimitError);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('bytes that are not HTTP/2 come out as they went in', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), places, (bytes, cuts) => {
        fc.pre(!Buffer.from(bytes).subarray(0, 24).equals(CLIENT_PREFACE));
        expect(run(cutAt(Buffer.from(bytes), cuts)).out).toEqual(Buffer.from(bytes));
      }),
    );
  });
});
