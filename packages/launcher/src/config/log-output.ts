import { writeSync } from 'node:fs';

/** Bytes that may wait for a slow reader; beyond it whole lines are left out. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const RETRY_MS = 20;
const FLUSH_LIMIT_MS = 500;
const FLUSH_PAUSE_MS = 5;

/** Where log lines go: whole, in order, and never in the way of the program. */
export interface LogOutput {
  /** Takes one or more whole lines. Never waits, never throws. */
  write(lines: string): void;
  /** Waits a moment for the reader to take what is left, before the process ends. */
  flush(): void;
}

/** How bytes get out: as `fs.writeSync`, which says EAGAIN when the reader is slow. */
export type WriteBytes = (bytes: Buffer) => number;

class DescriptorOutput implements LogOutput {
  readonly #writeBytes: WriteBytes;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(writeBytes: WriteBytes) {
    this.#writeBytes = writeBytes;
  }

  write(lines: string): void {
    const bytes = Buffer.from(lines);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#timer === undefined) this.#drain();
  }

  flush(): void {
    const giveUpAtMs = Date.now() + FLUSH_LIMIT_MS;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while (!this.#drain() && Date.now() < giveUpAtMs) Atomics.wait(pause, 0, 0, FLUSH_PAUSE_MS);
  }

  /** Writes what the reader takes. Returns false when something is left. */
  #drain(): boolean {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (let head = this.#waiting[0]; head !== undefined; head = this.#waiting[0]) {
      const written = this.#tryWrite(head);
      if (written === undefined) {
        this.#timer = setTimeout(() => this.#drain(), RETRY_MS);
        return false;
      }
      this.#waitingBytes -= written;
      if (written < head.length) this.#waiting[0] = head.subarray(written);
      else this.#waiting.shift();
    }
    this.#reportDropped();
    return true;
  }

  /** Bytes that were written; undefined when the reader has to be waited for. A reader that is gone takes everything. */
  #tryWrite(bytes: Buffer): number | undefined {
    try {
      return this.#writeBytes(bytes);
    } catch (caught) {
      const { code } = caught as NodeJS.ErrnoException;
      return code === 'EAGAIN' ? undefined : bytes.length;
    }
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return;
    const msg = `${this.#dropped} log lines were left out, their reader was too slow`;
    this.#dropped = 0;
    this.write(`${JSON.stringify({ component: 'virt-launcher', level: 'warning', msg })}\n`);
  }
}

/** Creates an output to a file descriptor. It does not keep the process alive longer than its reader takes lines. */
export function createLogOutput(fd: number): LogOutput {
  return new DescriptorOutput((bytes) => writeSync(fd, bytes));
}

/** Creates an output over a function, for tests. */
export function createLogOutputOver(writeBytes: WriteBytes): LogOutput {
  return new DescriptorOutput(writeBytes);
}
