import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { EmulatedLauncherOptions } from '../emulate/api.ts';
import type { Emulations } from '../matrix/emulations.ts';
import type { RunningLauncher, StartLauncher } from '../matrix/subjects.ts';
import { startRelay } from './relay.ts';
import type { RelayOptions } from './relay.ts';

const COMMAND_SOCKET = 'launcher-sock';
const PIPE = 'domain-notify-pipe.sock';

/** A fault of our handler: what it sends, or how it answers, goes over the wire changed. */
export interface HandlerFault {
  readonly cmd?: RelayOptions;
  readonly notify?: RelayOptions;
}

/** Emulated launchers that see our handler through a relay that changes what it says. */
export function withHandlerFault(emulations: Emulations, { cmd, notify }: HandlerFault): Emulations {
  return {
    ...emulations,
    async startLauncher(options: EmulatedLauncherOptions) {
      const hidden = join(options.socketsDir, '..', 'h');
      const share = join(options.shareDir, 'h');
      mkdirSync(hidden, { recursive: true });
      mkdirSync(share, { recursive: true });
      const launcher = await emulations.startLauncher({ ...options, socketsDir: hidden, shareDir: share });
      const visible = join(options.socketsDir, COMMAND_SOCKET);
      const relays = [
        await startRelay(visible, launcher.cmdSocket, cmd),
        await startRelay(join(share, PIPE), join(options.shareDir, PIPE), notify),
      ];
      const end = launcher[Symbol.asyncDispose].bind(launcher);
      launcher[Symbol.asyncDispose] = async () => {
        for (const relay of relays) await relay[Symbol.asyncDispose]();
        await end();
      };
      return launcher;
    },
  };
}

/** Our launcher, seen through a relay that changes what it says. */
export function withLauncherFault(
  startLauncher: StartLauncher,
  { cmd, notify }: { readonly cmd?: RelayOptions; readonly notify?: RelayOptions },
): StartLauncher {
  return async (start) => {
    const hiddenShare = join(start.scratchDir, 's');
    mkdirSync(join(hiddenShare, 'sockets'), { recursive: true });
    const relays = [await startRelay(join(hiddenShare, PIPE), join(start.pod.shareDir, PIPE), notify)];
    const pod = { ...start.pod, shareDir: hiddenShare };
    const launcher: RunningLauncher = await startLauncher({ ...start, pod });
    const real = join(hiddenShare, 'sockets', COMMAND_SOCKET);
    relays.push(await startRelay(join(start.pod.socketsDir, COMMAND_SOCKET), real, cmd));
    return {
      qemuPidFile: launcher.qemuPidFile,
      get hasEnded() {
        return launcher.hasEnded;
      },
      terminate: () => launcher.terminate(),
      async kill() {
        for (const relay of relays) await relay[Symbol.asyncDispose]();
        await launcher.kill();
      },
    };
  };
}
