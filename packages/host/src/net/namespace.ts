import * as fs from 'node:fs';
import { HostError } from '../errors.ts';
import { libc, throwErrno } from '../libc.ts';
import { bindMount, unmount } from '../mount/mount.ts';

const CLONE_NEWNET = 0x4000_0000;

/**
 * A network namespace, held by a descriptor. Work inside it is synchronous: the main thread enters, acts and leaves
 * before anything else can run. Sockets made inside stay in it, so longer work goes through a socket made there.
 */
export class NetworkNamespace implements Disposable {
  readonly display: string;
  readonly #fd: number;
  #open = true;

  private constructor(fd: number, display: string) {
    this.#fd = fd;
    this.display = display;
  }

  /** Opens a namespace file, such as `/proc/<pid>/ns/net` or one that `ip netns` has made. */
  static open(path: string): NetworkNamespace {
    try {
      return new NetworkNamespace(fs.openSync(path, fs.constants.O_RDONLY), path);
    } catch (caught) {
      throw HostError.from(caught, 'Syscall', `open network namespace ${path}`);
    }
  }

  /**
   * Makes a namespace that lives until {@link NetworkNamespace.remove}, as `ip netns add` does: an empty file at `path`
   * becomes its mount point. Its loopback is down.
   *
   * @param path a file that does not exist; its directory does.
   */
  static create(path: string): NetworkNamespace {
    fs.closeSync(fs.openSync(path, 'wx', 0o444));
    try {
      using home = NetworkNamespace.own();
      if (libc().unshare(CLONE_NEWNET) !== 0) throwErrno('make a network namespace');
      try {
        bindMount('/proc/thread-self/ns/net', path);
      } finally {
        if (libc().setns(home.fd, CLONE_NEWNET) !== 0) process.abort();
      }
      return NetworkNamespace.open(path);
    } catch (caught) {
      NetworkNamespace.remove(path);
      throw caught;
    }
  }

  /** Unmounts and removes the file of a made namespace; the kernel drops it with its last user. Idempotent. */
  static remove(path: string): void {
    unmount(path);
    fs.rmSync(path, { force: true });
  }

  /** The namespace of this process's main thread. */
  static own(): NetworkNamespace {
    return NetworkNamespace.open('/proc/thread-self/ns/net');
  }

  /** Number that names the namespace as long as it exists. */
  get inode(): bigint {
    return fs.fstatSync(this.#fd, { bigint: true }).ino;
  }

  get fd(): number {
    if (!this.#open) throw new HostError('Syscall', `network namespace ${this.display} is closed`);
    return this.#fd;
  }

  /**
   * Runs a synchronous action inside. If the way back fails, this thread would stay in a foreign namespace, which no
   * caller can survive: the process ends.
   */
  run<T>(action: () => T): T {
    using home = NetworkNamespace.own();
    if (libc().setns(this.fd, CLONE_NEWNET) !== 0) throwErrno(`enter network namespace ${this.display}`);
    try {
      const result = action();
      if (result instanceof Promise) throw new HostError('NamespaceLost', 'an action in a namespace must not wait');
      return result;
    } finally {
      if (libc().setns(home.fd, CLONE_NEWNET) !== 0) process.abort();
    }
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    fs.closeSync(this.#fd);
  }
}
