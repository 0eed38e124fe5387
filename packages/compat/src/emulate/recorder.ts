import { performance } from 'node:perf_hooks';

import type { RecordedCall } from './api.ts';
import type { Fields } from './schema/release-schema.ts';

/** Calls of one emulated peer; the newest {@link MAX_CALLS} are kept. */
export interface Recorder {
  readonly calls: readonly RecordedCall[];
  record(call: Omit<RecordedCall, 'seq' | 'atMs'>): void;
}

const MAX_CALLS = 10_000;

/** Creates a recorder. Bytes that hold JSON are recorded as the JSON. */
export function createRecorder(onCall: () => void): Recorder {
  const calls: RecordedCall[] = [];
  const startMs = performance.now();
  let seq = 0;
  return {
    calls,
    record: (call) => {
      seq++;
      const { response } = call;
      calls.push({
        ...call,
        seq,
        atMs: performance.now() - startMs,
        request: readable(call.request),
        response: response === undefined ? undefined : readable(response),
      });
      if (calls.length > MAX_CALLS) calls.shift();
      onCall();
    },
  };
}

/** Embedded JSON as values; other bytes as they are. */
export function readable(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, readableValue(value)]));
}

function readableValue(value: unknown): unknown {
  if (value instanceof Uint8Array) return parsed(Buffer.from(value).toString('utf8')) ?? value;
  if (typeof value === 'string' && /^[[{]/.test(value)) return parsed(value) ?? value;
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  return readable(value as Fields);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
