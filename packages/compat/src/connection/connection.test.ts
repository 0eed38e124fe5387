import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WatchedConnection } from '../record/watched-connection.ts';
import { readRecordings } from '../replay/recordings.ts';
import { readConnection } from './calls.ts';
import { FrameReader, renderDataFrames, type Sender } from './frames.ts';
import { MessageSplitter, renderMessage } from './message-splitter.ts';
import { StreamReader } from './stream-reader.ts';

const { connections } = readRecordings(join(import.meta.dirname, '../../../../testdata/captures.ndjson.br'));
const RECORDED = connections.map(({ bytes }) => bytes.subarray(0, 16_384));

/** Recorded bytes with a few of them changed, and a piece of another connection somewhere. */
const damaged = fc
  .tuple(
    fc.constantFrom(...RECORDED),
    fc.array(fc.tuple(fc.nat(16_383), fc.nat(255)), { maxLength: 8 }),
    fc.constantFrom(...RECORDED),
    fc.nat(16_383),
  )
  .map(([bytes, changes, other, at]) => {
    const copy = Buffer.from(bytes);
    for (const [place, byte] of changes) if (place < copy.length) copy[place] = byte;
    return Buffer.concat([copy.subarray(0, at), other.subarray(at, at + 64), copy.subarray(at)]);
  });

test('bytes of a recorded connection are read the same in one piece and in any others', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...RECORDED),
      fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 60 }),
      (bytes, cuts) => {
        const reader = new StreamReader('client');
        const events = [];
        let at = 0;
        for (const cut of cuts) {
          events.push(...reader.push(bytes.subarray(at, at + cut)));
          at += cut;
        }
        events.push(...reader.push(bytes.subarray(at)));
        expect(events).toEqual(new StreamReader('client').push(bytes));
      },
    ),
    { numRuns: 100 },
  );
});

test('damaged connections are read as far as they go, and never throw', () => {
  fc.assert(
    fc.property(damaged, fc.constantFrom<Sender>('client', 'server'), (bytes, sender) => {
      const { streams } = readConnection(sender, bytes);
      const length = streams.flatMap(({ messages }) => messages).reduce((sum, message) => sum + message.length, 0);
      expect(length).toBeLessThanOrEqual(bytes.length);
    }),
    { numRuns: 1_000 },
  );
});

test('a recorder takes damaged connections, tells why it stops reading, and ends every call', () => {
  fc.assert(
    fc.property(damaged, damaged, (fromClient, fromServer) => {
      let [begun, ended, flaws] = [0, 0, 0];
      const connection = new WatchedConnection(1, {
        onCall: () => {
          begun += 1;
          return () => void (ended += 1);
        },
        onBytes: () => undefined,
        onFlaw: () => void (flaws += 1),
        maskMessage: (_path, _sender, message) => message,
        maskText: (text) => text,
        nowMs: () => 0,
      });
      connection.push('client', fromClient);
      connection.push('server', fromServer);
      connection.end();
      expect(ended).toBe(begun);
      expect(flaws).toBeLessThanOrEqual(2);
    }),
    { numRuns: 500 },
  );
});

test('what is rendered as data frames and messages comes back', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40_000 }), { maxLength: 3 }), (messages) => {
      const content = Buffer.concat(messages.map((message) => renderMessage(message)));
      const frames = new FrameReader('server').push(renderDataFrames(7, content, true));
      expect(frames.every(({ streamId, length }) => streamId === 7 && length <= 16_384)).toBe(true);
      const splitter = new MessageSplitter();
      const back = frames.flatMap(({ payload }) => splitter.push(payload));
      expect(back.map((message) => Buffer.from(message))).toEqual(messages.map((message) => Buffer.from(message)));
      expect(splitter.pendingBytes).toBe(0);
    }),
    { numRuns: 50 },
  );
});
