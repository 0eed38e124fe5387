import { createRequire } from 'node:module';
import type * as Koffi from 'koffi';
import { getSystemErrorMap } from 'node:util';
import { HostError } from './errors.ts';

/** A libc function as koffi gives it: callable, or `.async(...args, callback)` on a pool thread. */
type Fn<A extends unknown[], R> = ((...args: A) => R) & {
  readonly async: (...args: [...A, (error: unknown, result: R) => void]) => void;
};

/** The libc calls that this package uses. Pointers are buffers, or null. */
export interface Libc {
  readonly mknodat: Fn<[number, string, number, bigint], number>;
  readonly setns: Fn<[number, number], number>;
  readonly unshare: Fn<[number], number>;
  readonly socket: Fn<[number, number, number], number>;
  readonly bind: Fn<[number, Buffer, number], number>;
  readonly connect: Fn<[number, Buffer, number], number>;
  readonly getsockopt: Fn<[number, number, number, Buffer, Buffer], number>;
  readonly setsockopt: Fn<[number, number, number, Buffer, number], number>;
  readonly send: Fn<[number, Buffer, number, number], number>;
  readonly recv: Fn<[number, Buffer, number, number], number>;
  /** One message, its `msghdr` as bytes. */
  readonly sendmsg: Fn<[number, Buffer, number], number>;
  readonly recvmsg: Fn<[number, Buffer, number], number>;
  readonly dup2: Fn<[number, number], number>;
  readonly fcntl: Fn<[number, number, number], number>;
  readonly ioctl: Fn<[number, number, Buffer | number], number>;
  readonly ioctlInt: Fn<[number, number, number], number>;
  readonly waitpid: Fn<[number, Buffer, number], number>;
  readonly waitid: Fn<[number, number, Buffer, number], number>;
  readonly prlimit: Fn<[number, number, Buffer | null, Buffer | null], number>;
  readonly mount: Fn<[string | null, string, string | null, bigint, string | null], number>;
  readonly umount2: Fn<[string, number], number>;
  readonly poll: Fn<[Buffer, number, number], number>;
  readonly pidfdOpen: Fn<[number, number, number], number>;
  readonly pidfdSendSignal: Fn<[number, number, number, null, number], number>;
  readonly pipe2: Fn<[Buffer, number], number>;
  readonly posixSpawn: Fn<[Buffer, string, Buffer, Buffer, Argv, Argv], number>;
  readonly fileActionsInit: Fn<[Buffer], number>;
  readonly fileActionsDup2: Fn<[Buffer, number, number], number>;
  readonly fileActionsChdir: Fn<[Buffer, string], number>;
  readonly fileActionsDestroy: Fn<[Buffer], number>;
  readonly spawnAttrInit: Fn<[Buffer], number>;
  readonly spawnAttrFlags: Fn<[Buffer, number], number>;
  readonly spawnAttrSigDefault: Fn<[Buffer, Buffer], number>;
  readonly spawnAttrSigMask: Fn<[Buffer, Buffer], number>;
  readonly spawnAttrDestroy: Fn<[Buffer], number>;
  readonly errno: () => number;
  /** Where a buffer's bytes lie, for structs that point to others; the buffer must live as long as they are used. */
  readonly addressOf: (buffer: Buffer) => bigint;
}

/** A list of strings that ends with null, as `execve` takes it. */
type Argv = readonly (string | null)[];

const SYS_PIDFD_SEND_SIGNAL = 424;
const SYS_PIDFD_OPEN = 434;

let loaded: Libc | undefined;

/** libc, loaded at the first call: a process that needs no system call beyond Node's does not pay for FFI. */
export function libc(): Libc {
  loaded ??= load();
  return loaded;
}

function load(): Libc {
  const koffi = createRequire(import.meta.url)('koffi') as typeof Koffi;
  const lib = koffi.load('libc.so.6');
  const define = <A extends unknown[], R>(definition: string): Fn<A, R> => lib.func(definition) as Fn<A, R>;
  return {
    mknodat: define('int mknodat(int, const char *, uint, uint64)'),
    setns: define('int setns(int, int)'),
    unshare: define('int unshare(int)'),
    socket: define('int socket(int, int, int)'),
    bind: define('int bind(int, void *, uint)'),
    connect: define('int connect(int, void *, uint)'),
    getsockopt: define('int getsockopt(int, int, int, void *, void *)'),
    setsockopt: define('int setsockopt(int, int, int, void *, uint)'),
    send: define('int64 send(int, void *, size_t, int)'),
    recv: define('int64 recv(int, void *, size_t, int)'),
    sendmsg: define('int64 sendmsg(int, void *, int)'),
    recvmsg: define('int64 recvmsg(int, void *, int)'),
    dup2: define('int dup2(int, int)'),
    fcntl: define('int fcntl(int, int, int)'),
    ioctl: define('int ioctl(int, ulong, void *)'),
    ioctlInt: define('int ioctl(int, ulong, long)'),
    waitpid: define('int waitpid(int, void *, int)'),
    waitid: define('int waitid(int, int, void *, int)'),
    prlimit: define('int prlimit(int, int, void *, void *)'),
    mount: define('int mount(const char *, const char *, const char *, ulong, const char *)'),
    umount2: define('int umount2(const char *, int)'),
    poll: define('int poll(void *, ulong, int)'),
    pidfdOpen: define('long syscall(long, int, uint)'),
    pidfdSendSignal: define('long syscall(long, int, int, void *, uint)'),
    pipe2: define('int pipe2(void *, int)'),
    posixSpawn: define('int posix_spawnp(void *, const char *, void *, void *, const char **, const char **)'),
    fileActionsInit: define('int posix_spawn_file_actions_init(void *)'),
    fileActionsDup2: define('int posix_spawn_file_actions_adddup2(void *, int, int)'),
    fileActionsChdir: define('int posix_spawn_file_actions_addchdir_np(void *, const char *)'),
    fileActionsDestroy: define('int posix_spawn_file_actions_destroy(void *)'),
    spawnAttrInit: define('int posix_spawnattr_init(void *)'),
    spawnAttrFlags: define('int posix_spawnattr_setflags(void *, short)'),
    spawnAttrSigDefault: define('int posix_spawnattr_setsigdefault(void *, void *)'),
    spawnAttrSigMask: define('int posix_spawnattr_setsigmask(void *, void *)'),
    spawnAttrDestroy: define('int posix_spawnattr_destroy(void *)'),
    errno: () => koffi.errno(),
    addressOf: (buffer) => koffi.address(buffer),
  };
}

/** Runs `pidfd_open(pid)`; -1 on failure. */
export function pidfdOpen(pid: number): number {
  return libc().pidfdOpen(SYS_PIDFD_OPEN, pid, 0);
}

/** Runs `pidfd_send_signal(fd, signal)`; -1 on failure. */
export function pidfdSendSignal(fd: number, signal: number): number {
  return libc().pidfdSendSignal(SYS_PIDFD_SEND_SIGNAL, fd, signal, null, 0);
}

/** Name and text of an errno (`ENOENT`, `no such file or directory`). */
export function describeErrno(errno: number): { readonly name: string; readonly text: string } {
  const known = getSystemErrorMap().get(-errno);
  return known === undefined ? { name: `E${errno}`, text: `errno ${errno}` } : { name: known[0], text: known[1] };
}

/** Throws the failure of the libc call that was made just before, on this thread. */
export function throwErrno(doing: string): never {
  const { name, text } = describeErrno(libc().errno());
  throw new HostError('Syscall', `${doing}: ${name}: ${text}`, { errno: name });
}
