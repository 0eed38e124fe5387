import { expect, test } from 'vitest';
import { createExpectations } from './expectations.ts';

test('an expectation is open until its event comes, and for five minutes at most', () => {
  let nowMs = 0;
  const expectations = createExpectations(() => nowMs);
  expectations.expect('a');
  expectations.expect('b');
  expectations.drop('b');
  nowMs = 300_000;
  expect(expectations.isOpen('a')).toBe(true);
  expect(expectations.isOpen('b')).toBe(false);
  nowMs = 300_001;
  expect(expectations.isOpen('a')).toBe(false);
  expect(expectations.size).toBe(0);
});
