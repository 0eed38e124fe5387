import * as fs from 'node:fs';
import * as path from 'node:path';
import { errnoOf, HostError } from '../errors.ts';
import { makeNode } from './mknod.ts';

const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const NO_FOLLOW = O_PATH | O_CLOEXEC | fs.constants.O_NOFOLLOW;

/** Components that one resolution may consume, links included. @source KubeVirt v1.9.0 pkg/safepath/safepath.go:22 */
const MAX_COMPONENTS = 256;

/** Content and looks of a file that {@link SafePath.replaceFile} puts in place. */
export interface NewFile {
  readonly content: string | Uint8Array;
  readonly mode: number;
  readonly owner?: { readonly uid: number; readonly gid: number };
}

/**
 * A file or directory held by a descriptor (O_PATH), found without following any link that leaves its root. What was
 * checked is what is used: all operations go through the descriptor, so swapping a name for a link has no effect.
 * Hold it with `using`. `display` is for messages only.
 *
 * @source KubeVirt v1.9.0 pkg/safepath/safepath.go:22
 */
export class SafePath implements Disposable {
  readonly display: string;
  #fd: number | undefined;

  private constructor(fd: number, display: string) {
    this.#fd = fd;
    this.display = display;
  }

  /** Opens a trusted path (links are followed), such as a pod's root or a directory of our own. */
  static openRoot(trusted: string): SafePath {
    return attempt(`open ${trusted}`, () => new SafePath(fs.openSync(trusted, O_PATH | O_CLOEXEC), trusted));
  }

  /**
   * Opens an absolute path and refuses a link in any place, the last one included.
   *
   * @throws {HostError} `UnsafePath` for a relative path or a link.
   */
  static openNoFollow(absolute: string): SafePath {
    if (!path.isAbsolute(absolute)) throw new HostError('UnsafePath', `path ${absolute} is not absolute`);
    using root = SafePath.openRoot('/');
    return root.join(absolute.slice(1));
  }

  /** The descriptor; valid until disposal. */
  get fd(): number {
    if (this.#fd === undefined) throw new HostError('UnsafePath', `${this.display} is closed`);
    return this.#fd;
  }

  /** A path that means this very object while it is open; usable for `connect`, `mount` and in child arguments. */
  get procPath(): string {
    return `/proc/self/fd/${this.fd}`;
  }

  /**
   * Goes down from this directory, name by name, and refuses links, `..` and missing names. Empty and `.` parts of
   * `relative` are dropped; `''` gives a second handle of this directory.
   *
   * @throws {HostError} `UnsafePath` for a link or `..`; `Syscall` with errno `ENOENT` when a part is missing.
   */
  join(...relative: readonly string[]): SafePath {
    let current = this.#again();
    for (const name of splitNames(relative)) {
      using parent = current;
      current = parent.#child(name);
    }
    return current;
  }

  /**
   * Goes down from this directory and follows links as a process would whose root this is: an absolute target starts
   * again here, `..` cannot leave it.
   *
   * @throws {HostError} `TooManyLinks` after 256 components.
   * @source KubeVirt v1.9.0 pkg/safepath/safepath.go JoinAndResolveWithRelativeRoot
   */
  resolve(...parts: readonly string[]): SafePath {
    const todo = parts.flatMap((p) => p.split('/'));
    const opened: SafePath[] = [this.#again()];
    try {
      for (let consumed = 0; todo.length > 0; consumed++) {
        if (consumed >= MAX_COMPONENTS) {
          throw new HostError('TooManyLinks', `more than ${MAX_COMPONENTS} path elements evaluated in ${this.display}`);
        }
        const name = todo.shift() ?? '';
        if (name === '' || name === '.') continue;
        if (name === '..') {
          if (opened.length > 1) opened.pop()?.[Symbol.dispose]();
          continue;
        }
        const target = this.#step(opened, name);
        if (target === undefined) continue;
        if (target.startsWith('/')) for (const o of opened.splice(1)) o[Symbol.dispose]();
        todo.unshift(...target.split('/'));
      }
      return opened.pop() ?? this.#again();
    } finally {
      for (const o of opened) o[Symbol.dispose]();
    }
  }

  /** Opens `name` below the last opened directory; a link is not pushed, its target is returned. */
  #step(opened: SafePath[], name: string): string | undefined {
    const parent = opened.at(-1) ?? this;
    const child = parent.#openName(name);
    if (!child.stat().isSymbolicLink()) {
      opened.push(child);
      return undefined;
    }
    using link = child;
    // By name: if it was swapped meanwhile, the other target goes through the same rules, or the call fails.
    return attempt(`readlink ${link.display}`, () => fs.readlinkSync(`${parent.procPath}/${name}`));
  }

  stat(): fs.Stats {
    return attempt(`stat ${this.display}`, () => fs.fstatSync(this.fd));
  }

  isDirectory(): boolean {
    return this.stat().isDirectory();
  }

  /** True for a device node; character devices count too. @source KubeVirt v1.9.0 pkg/virt-handler/isolation */
  isDevice(): boolean {
    const s = this.stat();
    return s.isBlockDevice() || s.isCharacterDevice();
  }

  /** True if an object of that name is in this directory; a dangling link counts. */
  has(name: string): boolean {
    try {
      fs.lstatSync(this.#at(name));
      return true;
    } catch (caught) {
      if (errnoOf(caught) === 'ENOENT') return false;
      throw HostError.from(caught, 'Syscall', `stat ${this.display}/${name}`);
    }
  }

  chmod(mode: number): void {
    attempt(`chmod ${this.display}`, () => fs.chmodSync(this.procPath, mode));
  }

  chown(uid: number, gid: number): void {
    attempt(`chown ${this.display}`, () => fs.chownSync(this.procPath, uid, gid));
  }

  /** Sets the owner unless it is so already; returns whether something changed. */
  ensureOwner(uid: number, gid: number): boolean {
    const s = this.stat();
    if (s.uid === uid && s.gid === gid) return false;
    this.chown(uid, gid);
    return true;
  }

  /** Creates an empty file; errno `EEXIST` when there is anything of that name. The mode is exact, no umask. */
  touch(name: string, mode: number): void {
    attempt(`touch ${this.display}/${name}`, () => {
      const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants;
      const fd = fs.openSync(this.#at(name), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode);
      try {
        fs.fchmodSync(fd, mode);
      } finally {
        fs.closeSync(fd);
      }
    });
  }

  /** Creates a directory; the process's umask applies. */
  mkdir(name: string, mode: number): void {
    attempt(`mkdir ${this.display}/${name}`, () => fs.mkdirSync(this.#at(name), mode));
  }

  /** Creates whatever is missing of a directory path and opens its end; refuses links. */
  ensureDirectory(relative: string, mode: number): SafePath {
    let current = this.#again();
    for (const name of splitNames([relative])) {
      using parent = current;
      try {
        parent.mkdir(name, mode);
      } catch (caught) {
        if (errnoOf(caught) !== 'EEXIST') throw caught;
      }
      current = parent.#child(name);
    }
    return current;
  }

  /** Creates a device node of type `S_IFBLK` or `S_IFCHR` with the given permissions (umask applies). */
  mknod(name: string, type: 'block' | 'char', mode: number, device: { major: number; minor: number }): void {
    makeNode(this.fd, checkName(name), type, mode, device, `${this.display}/${name}`);
  }

  /** Removes a name, never what a link there points to. */
  unlink(name: string): void {
    attempt(`unlink ${this.display}/${name}`, () => fs.unlinkSync(this.#at(name)));
  }

  /** Removes an empty directory. */
  rmdir(name: string): void {
    attempt(`rmdir ${this.display}/${name}`, () => fs.rmdirSync(this.#at(name)));
  }

  /** Renames within this directory; replaces the target. */
  rename(from: string, to: string): void {
    attempt(`rename ${this.display}/${from}`, () => fs.renameSync(this.#at(from), this.#at(to)));
  }

  /** Names in this directory, without `.` and `..`. */
  names(): string[] {
    return attempt(`read directory ${this.display}`, () => fs.readdirSync(this.procPath));
  }

  /** Reads this regular file; refuses other kinds, since a pipe or device would block. */
  readFile(maxBytes = 16 * 1024 * 1024): Buffer {
    if (!this.stat().isFile()) throw new HostError('UnsafePath', `${this.display} is no regular file`);
    return attempt(`read ${this.display}`, () => {
      const fd = fs.openSync(this.procPath, fs.constants.O_RDONLY | O_CLOEXEC);
      try {
        if (fs.fstatSync(fd).size > maxBytes)
          throw new HostError('UnsafePath', `${this.display} is over ${maxBytes} bytes`);
        return fs.readFileSync(fd);
      } finally {
        fs.closeSync(fd);
      }
    });
  }

  /**
   * Writes a file whole or not at all: exclusive temporary name, owner by descriptor, rename over `name`. What a link
   * called `name` points to stays untouched.
   */
  replaceFile(name: string, file: NewFile): void {
    const temporary = `.${checkName(name)}.${process.pid}.${process.hrtime.bigint().toString(36)}`;
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants;
    attempt(`write ${this.display}/${name}`, () => {
      const fd = fs.openSync(this.#at(temporary), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, file.mode);
      try {
        fs.writeFileSync(fd, file.content);
        if (file.owner !== undefined) fs.fchownSync(fd, file.owner.uid, file.owner.gid);
        fs.fchmodSync(fd, file.mode);
        fs.renameSync(this.#at(temporary), this.#at(name));
      } catch (caught) {
        fs.rmSync(this.#at(temporary), { force: true });
        throw caught;
      } finally {
        fs.closeSync(fd);
      }
    });
  }

  /** Path of a name in this directory, through the descriptor: for `listen` and `connect` of unix sockets. */
  childPath(name: string): string {
    return this.#at(name);
  }

  [Symbol.dispose](): void {
    if (this.#fd === undefined) return;
    fs.closeSync(this.#fd);
    this.#fd = undefined;
  }

  #at(name: string): string {
    return `${this.procPath}/${checkName(name)}`;
  }

  #again(): SafePath {
    return attempt(
      `open ${this.display}`,
      () => new SafePath(fs.openSync(this.procPath, O_PATH | O_CLOEXEC), this.display),
    );
  }

  #openName(name: string): SafePath {
    const display = `${this.display === '/' ? '' : this.display}/${name}`;
    return attempt(`open ${display}`, () => new SafePath(fs.openSync(this.#at(name), NO_FOLLOW), display));
  }

  #child(name: string): SafePath {
    const child = this.#openName(name);
    if (!child.stat().isSymbolicLink()) return child;
    child[Symbol.dispose]();
    throw new HostError('UnsafePath', `${child.display} is a link`);
  }
}

function splitNames(parts: readonly string[]): string[] {
  return parts.flatMap((p) => p.split('/')).filter((n) => n !== '' && n !== '.');
}

/** A single path element: not empty, no `.`, `..`, slash or NUL. */
function checkName(name: string): string {
  if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('\0')) {
    throw new HostError('UnsafePath', `${JSON.stringify(name)} is no plain file name`);
  }
  return name;
}

function attempt<T>(doing: string, action: () => T): T {
  try {
    return action();
  } catch (caught) {
    throw HostError.from(caught, 'Syscall', doing);
  }
}
