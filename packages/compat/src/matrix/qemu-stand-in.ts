import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const PERIOD_MS = 10;

/**
 * Keeps a process where the launcher expects QEMU, for as long as the domain is active: launchers watch its id.
 *
 * @param isActive whether the domain is active now.
 */
export function keepStandIn(pidFile: string, isActive: () => boolean): Disposable {
  let child: ChildProcess | undefined;
  const end = (): void => {
    child?.kill('SIGKILL');
    child = undefined;
    rmSync(pidFile, { force: true });
  };
  const follow = (): void => {
    if (isActive() === (child !== undefined)) return;
    if (child !== undefined) return end();
    child = spawn('sleep', ['600'], { stdio: 'ignore' });
    child.on('error', () => undefined);
    mkdirSync(dirname(pidFile), { recursive: true });
    writeFileSync(pidFile, String(child.pid));
  };
  const timer = setInterval(follow, PERIOD_MS);
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      end();
    },
  };
}
