import { expect, test } from 'vitest';
import { HandlerError, hasErrorCode } from './errors.ts';

test('a code is found anywhere in the chain of causes, whatever class the error has', () => {
  const inner = Object.assign(new Error('x'), { code: 'ENOENT' });
  const outer = new HandlerError('Internal', 'outer', { cause: new Error('middle', { cause: inner }) });
  expect(hasErrorCode(outer, 'ENOENT')).toBe(true);
  expect(hasErrorCode(outer, 'Internal')).toBe(true);
  expect(hasErrorCode(outer, 'EPERM')).toBe(false);
});

test('an error that is its own cause does not hang the search', () => {
  const error = new Error('loop');
  error.cause = error;
  expect(hasErrorCode(error, 'X')).toBe(false);
});

test('wrapping keeps what is ours and says what was tried for the rest', () => {
  const ours = new HandlerError('Conflict', 'stale');
  expect(HandlerError.from(ours, 'Internal', 'write')).toBe(ours);
  expect(HandlerError.from('boom', 'Internal', 'write').message).toBe('write: boom');
});
