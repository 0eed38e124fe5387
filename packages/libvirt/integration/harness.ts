import type { ConnectOptions } from '../src/index.ts';

/** A daemon under test: the fake one or a real one, with the same levers. */
export interface Harness extends AsyncDisposable {
  readonly connectOptions: ConnectOptions;
  /** A directory that the daemon's guests can read. */
  readonly directory: string;
  /** The daemon dies at once; guests go on. */
  kill(): Promise<void>;
  /** It serves again. */
  start(): Promise<void>;
  /** It accepts connections and answers nothing. */
  pause(): void;
  resume(): void;
  /** The QEMU process of a domain dies. */
  killQemu(domainName: string): void;
}

/** What a suite needs to know of a kind of daemon. */
export interface HarnessKind {
  readonly title: string;
  start(): Promise<Harness>;
}

/** Waits for a condition, at most 60 s; says what it waited for. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineAtMs = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > deadlineAtMs) throw new Error(`waited 60 s for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
