import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createLogOutputOver, MAX_WAITING_BYTES } from './log-output.ts';

/** A reader that takes what it is told to take. */
function slowReader() {
  const state = { room: 0, text: '' };
  const output = createLogOutputOver((bytes) => {
    if (state.room === 0) throw Object.assign(new Error('EAGAIN'), { code: 'EAGAIN' });
    const taken = Math.min(state.room, bytes.length);
    state.room -= taken;
    state.text += bytes.subarray(0, taken).toString();
    return taken;
  });
  return { state, output };
}

test('a reader that is slow gets whole lines in order, and holds up nobody', async () => {
  const { state, output } = slowReader();
  output.write('one\n');
  output.write('two\n');
  expect(state.text).toBe('');
  state.room = 6;
  output.flush();
  expect(state.text).toBe('one\ntw');
  state.room = 1_000;
  while (!state.text.endsWith('two\n')) await sleep(5);
  output.write('three\n');
  expect(state.text).toBe('one\ntwo\nthree\n');
});

test('what is too much for a slow reader is left out, and said', () => {
  const { state, output } = slowReader();
  const line = `${'x'.repeat(1_000_000)}\n`;
  for (let i = 0; i < 10; i++) output.write(line);
  state.room = Infinity;
  output.flush();
  expect(state.text.length).toBeLessThan(MAX_WAITING_BYTES + 200);
  expect(state.text.endsWith('"msg":"6 log lines were left out, their reader was too slow"}\n')).toBe(true);
});

test('a reader that is gone is no failure', () => {
  const output = createLogOutputOver(() => {
    throw Object.assign(new Error('EPIPE'), { code: 'EPIPE' });
  });
  output.write('line\n');
  output.flush();
});
