/** Tests of one or more runs. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The parts of vitest's JSON report that are counted. */
export interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly numFailedTestSuites?: number;
  readonly testResults?: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
}

/** Counts one report; a test file that failed to load has no tests and counts as one failure. */
export function countReport(report: Report): Counts {
  const broken = (report.testResults ?? []).filter((f) => f.status === 'failed' && f.assertionResults.length === 0);
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/** The part of the compatibility matrix' JSON report that is counted. */
export interface MatrixReport {
  readonly counts: {
    readonly passed: number;
    readonly declared: number;
    readonly notBuilt: number;
    readonly failed: number;
  };
}

/** Counts the cells of a matrix: a declared difference passes, and what is not built counts as skipped. */
export function countMatrix({ counts: { passed, declared, notBuilt, failed } }: MatrixReport): Counts {
  return { passed: passed + declared, failed, skipped: notBuilt };
}

/** How a step of the run ended; `isTests` for one that leaves reports, whose failures are counted from them. */
export interface StepResult {
  readonly isOk: boolean;
  readonly isTests: boolean;
}

/**
 * Counts steps: each check is one, and so is a step of tests that failed without a failed test, as one that was cut off.
 *
 * @param failedTests failures that the reports have.
 */
export function countSteps(steps: readonly StepResult[], failedTests: number): Counts {
  const checks = steps.filter((s) => !s.isTests);
  const isCutOff = failedTests === 0 && steps.some((s) => s.isTests && !s.isOk);
  const failed = checks.filter((s) => !s.isOk).length;
  return { passed: checks.length - failed, failed: failed + (isCutOff ? 1 : 0), skipped: 0 };
}

/** Adds runs up. */
export function addCounts(all: readonly Counts[]): Counts {
  return all.reduce(
    (sum, c) => ({ passed: sum.passed + c.passed, failed: sum.failed + c.failed, skipped: sum.skipped + c.skipped }),
    { passed: 0, failed: 0, skipped: 0 },
  );
}

/**
 * Whether a run may be called good. On CI a skip is a failure: what is missing there must be installed, not passed over.
 *
 * @param notBuilt skips that no installation changes: cells of the matrix whose part does not exist yet.
 */
export function isGood(counts: Counts, stepsFailed: number, isCi: boolean, notBuilt = 0): boolean {
  return counts.failed === 0 && stepsFailed === 0 && counts.passed > 0 && !(isCi && counts.skipped > notBuilt);
}
