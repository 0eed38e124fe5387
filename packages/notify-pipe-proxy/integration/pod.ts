import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** A process with a mount namespace of its own and an empty /run/kubevirt in it, as a launcher's pod has. */
export interface Pod extends AsyncDisposable {
  readonly pid: number;
  /** Sends a text through the pipe from inside, as a user; resolves with the answer, or the code of the error. */
  talk(uid: number, text: string): Promise<string>;
  /** Runs a command inside; resolves with what it printed. */
  run(command: string, ...args: readonly string[]): Promise<string>;
  kill(): void;
}

const SETUP = 'mount -t tmpfs tmpfs /run && mkdir -m 0755 /run/kubevirt && echo ready && exec sleep 600';

/** Starts a pod; needs root. */
export async function startPod(): Promise<Pod> {
  const child = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', SETUP], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await untilReady(child);
  const { pid } = child;
  if (pid === undefined) throw new Error('the pod did not start');
  const ended = once(child, 'exit');
  const run = async (command: string, ...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)('nsenter', ['--target', `${pid}`, '--mount', '--', command, ...args])).stdout;
  return {
    pid,
    talk: (uid, text) => run(process.execPath, fileURLToPath(import.meta.resolve('./talk.ts')), `${uid}`, text),
    run,
    kill: () => void child.kill('SIGKILL'),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the pod ended with ${code ?? 'a signal'}`)));
  });
}
