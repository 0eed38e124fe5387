import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readLastPanic, renderPanicMessage } from './guest-panic.ts';

const dir = mkdtempSync(join(tmpdir(), 'virtwire-panic-'));
const file = join(dir, 'vm.log');
afterAll(() => rmSync(dir, { recursive: true }));

test.each([
  ['at the start', (line: string) => `${line}\n${'x'.repeat(9_000)}\n`],
  ['across a chunk', (line: string) => `${'a'.repeat(4_090)}\n${line}\n${'b'.repeat(4_060)}\n`],
  ['without an end', (line: string) => `y\n${line}`],
  ['behind a very long line', (line: string) => `${line}\n${'z'.repeat(100_000)}\n`],
])('finds the last panic %s', (_title, build) => {
  writeFileSync(
    file,
    build("2026-01-01: panic hyper-v: arg1='0x7e', arg2='0xffffffffc0000005', arg3='0x1', arg4='0x2', arg5='0x0'"),
  );
  const info = readLastPanic(file);
  expect(info).toMatchObject({ Type: 'hyper-v', Arg1: 0x7en, Arg2: 0xffffffffc0000005n });
  expect(renderPanicMessage(info)).toBe("GuestPanicked: '0x7e', '0xffffffffc0000005', '0x1', '0x2', '0x0'");
});

test('the last of several counts', () => {
  writeFileSync(file, 'x: panic first: a\nx: panic second: b\nend\n');
  expect(readLastPanic(file)).toEqual({ Type: 'second' });
  expect(renderPanicMessage({ Type: 'second' })).toBe('GuestPanicked: type=second');
});

test('a line with a carriage return counts, an argument of more than 64 bits does not', () => {
  writeFileSync(file, "x: panic hyper-v: arg1='0xffffffffffffffffff', arg2='0xffffffffffffffff'\r\n");
  expect(readLastPanic(file)).toEqual({ Type: 'hyper-v', Arg2: 2n ** 64n - 1n });
});

test('no panic, no file', () => {
  writeFileSync(file, 'nothing\n');
  expect(readLastPanic(file)).toBeUndefined();
  expect(readLastPanic(join(dir, 'missing'))).toBeUndefined();
  expect(renderPanicMessage(undefined)).toBe('GuestPanicked (details unavailable)');
});
