import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensureDirectories, launcherPaths, parseFlags, runLauncher, systemClock } from '@virtwire/launcher';
import type { LauncherFlags, PodLinks } from '@virtwire/launcher';
import { createLogger } from '@virtwire/telemetry';
import { eventually } from './eventually.ts';
import type { LauncherStart, RunningLauncher } from './subjects.ts';

const STOP_LIMIT_MS = 100;

/** The pod network of every cell, as a handler leaves it with a masquerade interface; nobody asks it for addresses. */
const POD_LINKS: PodLinks = {
  links: [
    link(1, 'lo', '00:00:00:00:00:00'),
    link(2, 'eth0', '0a:58:0a:f4:00:05'),
    link(3, 'k6t-eth0', '02:00:00:00:00:00'),
    link(4, 'tap0', '02:00:00:00:00:01'),
  ],
  addresses: [{ linkIndex: 2, family: 4, ip: '10.244.0.5', prefixLength: 24 }],
};

function link(index: number, name: string, mac: string): PodLinks['links'][number] {
  const port = { masterIndex: undefined, learning: undefined, tun: undefined };
  return { index, name, mac, mtu: 1450, kind: '', isUp: true, operationalState: 'up', ...port };
}

/** The command line that virt-controller gives to the launcher of a cell, with every path below the cell's own. */
export function launcherArguments({ vm, pod, scratchDir, flags = [] }: LauncherStart): readonly string[] {
  const below = (name: string): string => join(scratchDir, name);
  return [
    ...['--name', vm.name, '--namespace', vm.namespace, '--uid', vm.uid, '--run-as-nonroot', '--allow-emulation'],
    ...['--kubevirt-share-dir', pod.shareDir, '--ephemeral-disk-dir', below('ephemeral')],
    ...['--container-disk-dir', below('container-disks'), '--hotplug-disk-dir', below('hotplug-disks')],
    ...['--kubevirt-private-dir', below('private'), '--libvirt-run-dir', below('libvirt')],
    ...['--grace-period-seconds', '1'],
    ...flags,
  ];
}

/** Starts virtwire's own launcher in this process, on the libvirt daemon of the cell. */
export function startOurLauncher(start: LauncherStart): Promise<RunningLauncher> {
  return runLauncherProcess(parseFlags(launcherArguments(start)), start.libvirtSocket, start.log);
}

/** Runs virtwire's own launcher on a libvirt daemon that somebody else keeps. It is ready when this resolves. */
export async function runLauncherProcess(
  flags: LauncherFlags,
  libvirtSocket: string,
  writeLine: (line: string) => void,
): Promise<RunningLauncher> {
  const paths = launcherPaths(flags);
  ensureDirectories(flags);
  const stopping = new AbortController();
  const log = createLogger('virt-launcher', { destination: { write: writeLine } });
  const stop = (): Promise<void> => Promise.resolve();
  const daemon = { starts: 1, pid: undefined, stop };
  const daemons = { name: 'libvirtd', socketPath: libvirtSocket, daemon, owns: () => false, stop };
  let hasEnded = false;
  const ended = runLauncher({
    ...{ flags, env: {}, clock: systemClock, log, daemons, writeLine, stopSignal: stopping.signal },
    podNetwork: { readLinks: () => POD_LINKS, startServers: () => Promise.resolve([]) },
  }).finally(() => {
    hasEnded = true;
  });
  ended.catch(() => undefined);
  await Promise.race([eventually('readiness of the launcher', () => existsSync(paths.readySocket)), ended]);
  return {
    qemuPidFile: paths.qemuPidFile,
    get hasEnded() {
      return hasEnded;
    },
    terminate: () => stopping.abort(),
    async kill() {
      stopping.abort();
      await Promise.race([ended.catch(() => undefined), sleep(STOP_LIMIT_MS, undefined, { ref: false })]);
    },
  };
}
