import { expect, test } from 'vitest';
import { decideFailureReason } from './failure-reason.ts';

const SMALL = "needs 'size'\n  has to be smaller  or equal to the actual size of the containing file";

test.each<[string, boolean, string]>([
  ['operation aborted: job canceled by client', false, 'Live migration has been aborted'],
  ['client socket is closed', true, 'Live migration has been aborted'],
  ['client socket is closed', false, 'client socket is closed'],
  [
    SMALL,
    false,
    `Volume migration cannot be performed because the destination volume is smaller than the source volume: ${SMALL}`,
  ],
])('%j (aborted: %s)', (text, isAborted, reason) => {
  expect(decideFailureReason(text, isAborted)).toBe(reason);
});
