/**
 * Remembers for which keys an own write has not come back yet as an event; such keys are left alone meanwhile.
 *
 * @source KubeVirt v1.9.0 pkg/controller/expectations.go
 */
export interface Expectations {
  expect(key: string): void;
  /** The event came, or the write failed. */
  drop(key: string): void;
  isOpen(key: string): boolean;
  readonly size: number;
}

const EXPIRES_AFTER_MS = 300_000;

/** An expectation is given up after 5 minutes. */
export function createExpectations(now: () => number): Expectations {
  const since = new Map<string, number>();
  return {
    expect: (key) => void since.set(key, now()),
    drop: (key) => void since.delete(key),
    isOpen(key) {
      const openedAtMs = since.get(key);
      if (openedAtMs === undefined) return false;
      if (now() - openedAtMs <= EXPIRES_AFTER_MS) return true;
      since.delete(key);
      return false;
    },
    get size() {
      return since.size;
    },
  };
}
