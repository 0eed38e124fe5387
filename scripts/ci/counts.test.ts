import { expect, test } from 'vitest';
import { addCounts, countMatrix, countReport, countSteps, isGood } from './counts.ts';

const report = { numPassedTests: 3, numFailedTests: 1, numPendingTests: 2, numTodoTests: 1 };

test('a report counts its tests; pending and todo are skips', () => {
  expect(countReport(report)).toEqual({ passed: 3, failed: 1, skipped: 3 });
});

test('a file that does not load is a failure although it has no tests', () => {
  const testResults = [{ status: 'failed', assertionResults: [] }];
  expect(countReport({ ...report, numFailedTests: 0, testResults }).failed).toBe(1);
});

test('runs add up', () => {
  expect(addCounts([countReport(report), countReport(report)])).toEqual({ passed: 6, failed: 2, skipped: 6 });
});

test.each([
  ['all passed', { passed: 1, failed: 0, skipped: 0 }, 0, true, true],
  ['a failed test', { passed: 1, failed: 1, skipped: 0 }, 0, false, false],
  ['a failed check', { passed: 1, failed: 0, skipped: 0 }, 1, false, false],
  ['a skip on CI', { passed: 1, failed: 0, skipped: 1 }, 0, true, false],
  ['a skip elsewhere', { passed: 1, failed: 0, skipped: 1 }, 0, false, true],
  ['no test at all', { passed: 0, failed: 0, skipped: 0 }, 0, true, false],
])('%s', (_title, counts, steps, isCi, good) => {
  expect(isGood(counts, steps, isCi)).toBe(good);
});

test('cells of the matrix are counted, and those that are not built skip without failing CI', () => {
  const counts = countMatrix({ counts: { passed: 7, declared: 2, notBuilt: 3, failed: 0 } });
  expect(counts).toEqual({ passed: 9, failed: 0, skipped: 3 });
  expect(isGood(counts, 0, true, counts.skipped)).toBe(true);
  expect(isGood({ ...counts, skipped: 4 }, 0, true, counts.skipped)).toBe(false);
  expect(isGood(countMatrix({ counts: { passed: 7, declared: 0, notBuilt: 0, failed: 1 } }), 0, false)).toBe(false);
});

test('a failed check shows as a failure in the last line, and so does a run of tests that was cut off', () => {
  const [good, bad] = [
    { isOk: true, isTests: false },
    { isOk: false, isTests: false },
  ];
  const [goodTests, badTests] = [
    { isOk: true, isTests: true },
    { isOk: false, isTests: true },
  ];
  expect(countSteps([good, good, goodTests], 0)).toEqual({ passed: 2, failed: 0, skipped: 0 });
  expect(countSteps([good, bad, goodTests], 0)).toEqual({ passed: 1, failed: 1, skipped: 0 });
  expect(countSteps([good, badTests], 0)).toEqual({ passed: 1, failed: 1, skipped: 0 });
  expect(countSteps([good, badTests], 3)).toEqual({ passed: 1, failed: 0, skipped: 0 });
});
