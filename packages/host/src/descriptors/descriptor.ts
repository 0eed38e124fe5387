import * as fs from 'node:fs';
import { HostError } from '../errors.ts';
import { libc, throwErrno } from '../libc.ts';

const F_DUPFD_CLOEXEC = 1030;

/** An open file descriptor that is closed when it is disposed of. */
export class Descriptor implements Disposable {
  readonly #fd: number;
  #isOpen = true;

  /** @param fd becomes this object's own. */
  constructor(fd: number) {
    this.#fd = fd;
  }

  /**
   * Its number.
   *
   * @throws {HostError} `Syscall` with `EBADF` once it is closed, as the number may be another's then.
   */
  get fd(): number {
    if (this.#isOpen) return this.#fd;
    throw new HostError('Syscall', `descriptor ${this.#fd} is closed`, { errno: 'EBADF' });
  }

  /**
   * Another descriptor of the same open file; closed on exec.
   *
   * @throws {HostError} `Syscall` with `EMFILE` when the process has too many, `EBADF` when it is closed.
   */
  static copyOf(fd: number): Descriptor {
    const copy = libc().fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) throwErrno(`copy descriptor ${fd}`);
    return new Descriptor(copy);
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    fs.closeSync(this.#fd);
  }
}
