import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { domainName } from '@virtwire/vm-model';
import { CompatError } from '../errors.ts';
import { startCommand } from './command.ts';
import { eventually } from './eventually.ts';
import { launcherArguments } from './our-launcher.ts';
import type { LauncherStart, RunningLauncher, StartLauncher } from './subjects.ts';

/** Environment variable with the socket of the libvirt daemon that a launcher under test has to use. */
export const LIBVIRT_VARIABLE = 'VIRTWIRE_COMPAT_LIBVIRT';

const READY_LIMIT_MS = 20_000;

/** A launcher under test that is a command of its own: it gets virt-launcher's flags and the socket of libvirt. */
export function commandLauncher(command: string): StartLauncher {
  return async (start: LauncherStart): Promise<RunningLauncher> => {
    const running = startCommand(command, launcherArguments(start), {
      env: { [LIBVIRT_VARIABLE]: start.libvirtSocket },
      onLine: start.log,
      log: start.log,
    });
    const socket = join(start.pod.socketsDir, 'launcher-sock');
    await eventually('readiness of the launcher', () => running.hasEnded || existsSync(socket), {
      limitMs: READY_LIMIT_MS,
    }).catch((error: unknown) => {
      running.child.kill('SIGKILL');
      throw error;
    });
    if (running.hasEnded) throw new CompatError('ConnectFailed', `the launcher is not ready, ${running.describe()}`);
    const pidFile = `${domainName(start.vm.namespace, start.vm.name)}.pid`;
    return {
      qemuPidFile: join(start.scratchDir, 'libvirt/qemu/run', pidFile),
      get hasEnded() {
        return running.hasEnded;
      },
      terminate: () => void running.child.kill('SIGTERM'),
      async kill() {
        running.child.kill('SIGKILL');
        await running.ended;
      },
    };
  };
}
