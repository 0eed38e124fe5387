import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const LAUNCHER = join(import.meta.dirname, '../packages/launcher');
const READY_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 50;

/** A real launcher with a real libvirt daemon, in namespaces of its own, without a handler. */
export interface LauncherPod extends AsyncDisposable {
  /** What the container sees as `/var/run/kubevirt`. */
  readonly shareDir: string;
  readonly cmdSocket: string;
  /** Resolves with the launcher's exit code. */
  readonly exited: Promise<number | null>;
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Starts a launcher and waits until it is ready. */
export async function startLauncherPod(vm: { name: string; namespace: string; uid: string }): Promise<LauncherPod> {
  const root = mkdtempSync(join(tmpdir(), 'e2e-pod-'));
  const shareDir = join(root, 'kubevirt');
  const cmdSocket = join(shareDir, 'sockets/launcher-sock');
  const unshare = ['--mount', '--pid', '--net', '--ipc', '--fork', '--kill-child', '--mount-proc'];
  const sandbox = ['sh', join(LAUNCHER, 'integration/support/sandbox.sh'), root];
  const launcher = [process.execPath, '-C', '@virtwire/source', join(LAUNCHER, 'src/main.ts')];
  const flags = ['--name', vm.name, '--namespace', vm.namespace, '--uid', vm.uid];
  const mode = ['--run-as-nonroot', '--allow-emulation'];
  const child = spawn('unshare', [...unshare, ...sandbox, ...launcher, ...mode, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output = `${output}${chunk.toString('utf8')}`.slice(-20_000)));
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const endsAtMs = Date.now() + READY_LIMIT_MS;
  while (!existsSync(cmdSocket)) {
    const hasFailed = child.exitCode !== null || Date.now() > endsAtMs;
    if (hasFailed) throw new Error(`the launcher is not ready:\n${output}`);
    await sleep(LOOK_EVERY_MS);
  }
  return {
    ...{ shareDir, cmdSocket, exited },
    async [Symbol.asyncDispose]() {
      // A change of user clears the death signal that unshare sets, so the pod's first process is ended by hand.
      for (const pid of childrenOf(child.pid ?? 0)) process.kill(pid, 'SIGKILL');
      child.kill('SIGKILL');
      await exited;
      rmSync(root, { recursive: true, force: true });
    },
  };
}
