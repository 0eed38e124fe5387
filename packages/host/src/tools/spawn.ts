import * as fs from 'node:fs';
import { HostError } from '../errors.ts';
import { describeErrno, libc, throwErrno } from '../libc.ts';

const O_CLOEXEC = 0o2000000;
const SETSIGDEF = 4;
const SETSIGMASK = 8;
/** Larger than glibc's posix_spawnattr_t (336 bytes) and posix_spawn_file_actions_t (80 bytes). */
const STRUCT_BYTES = 512;
const SIGSET_BYTES = 128;

/** What a child starts with. */
export interface SpawnRequest {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Network namespace to start in: called with the action that starts the child. */
  readonly within?: (action: () => number) => number;
}

/** A started child and this side's ends of its three pipes. */
export interface SpawnedChild {
  readonly pid: number;
  readonly stdin: number;
  readonly stdout: number;
  readonly stderr: number;
}

/**
 * Starts a child by posix_spawn, which does not copy this process's page tables as fork does: the event loop is held
 * for 0.2 ms whatever the size of the process (fork: 1 ms at 45 MB, 5.6 ms at 200 MB).
 */
export function spawnChild(request: SpawnRequest): SpawnedChild {
  const pipes: [number, number][] = [];
  try {
    for (let i = 0; i < 3; i++) pipes.push(makePipe());
    const [stdin, stdout, stderr] = pipes as [[number, number], [number, number], [number, number]];
    const start = (): number => posixSpawn(request, [stdin[0], stdout[1], stderr[1]]);
    const pid = request.within === undefined ? start() : request.within(start);
    for (const fd of [stdin[0], stdout[1], stderr[1]]) fs.closeSync(fd);
    return { pid, stdin: stdin[1], stdout: stdout[0], stderr: stderr[0] };
  } catch (caught) {
    for (const fd of pipes.flat()) fs.closeSync(fd);
    throw caught;
  }
}

function makePipe(): [read: number, write: number] {
  const ends = Buffer.alloc(8);
  if (libc().pipe2(ends, O_CLOEXEC) !== 0) throwErrno('create a pipe');
  return [ends.readInt32LE(0), ends.readInt32LE(4)];
}

function posixSpawn(request: SpawnRequest, stdio: readonly [number, number, number]): number {
  const c = libc();
  const [actions, attributes, pid] = [Buffer.alloc(STRUCT_BYTES), Buffer.alloc(STRUCT_BYTES), Buffer.alloc(4)];
  c.fileActionsInit(actions);
  c.spawnAttrInit(attributes);
  try {
    stdio.forEach((fd, target) => c.fileActionsDup2(actions, fd, target));
    if (request.cwd !== undefined) c.fileActionsChdir(actions, request.cwd);
    // Node ignores SIGPIPE, and ignored signals would be inherited.
    c.spawnAttrFlags(attributes, SETSIGDEF | SETSIGMASK);
    c.spawnAttrSigDefault(attributes, Buffer.alloc(SIGSET_BYTES, 0xff));
    c.spawnAttrSigMask(attributes, Buffer.alloc(SIGSET_BYTES));
    const argv = [request.file, ...request.args, null];
    const environment = Object.entries(request.env).flatMap(([k, v]) => (v === undefined ? [] : [`${k}=${v}`]));
    const errno = c.posixSpawn(pid, request.file, actions, attributes, argv, [...environment, null]);
    if (errno === 0) return pid.readInt32LE(0);
    const { name, text } = describeErrno(errno);
    const code = name === 'ENOENT' && request.cwd === undefined ? 'ToolNotFound' : 'Syscall';
    throw new HostError(code, `start ${request.file}: ${text}`, { errno: name });
  } finally {
    c.fileActionsDestroy(actions);
    c.spawnAttrDestroy(attributes);
  }
}
