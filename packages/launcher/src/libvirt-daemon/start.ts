import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { LauncherFlags } from '../config/flags.ts';
import { launcherPaths } from '../config/paths.ts';
import { writeDaemonConfig } from './config.ts';
import { detectLibvirtDaemon } from './detect.ts';
import { installHookClient } from './install-hook.ts';
import { decideLogFilters } from './log-filters.ts';
import { parseLibvirtLine, renderForwarded } from './log-lines.ts';
import { healDomainStatus } from './heal-status.ts';
import type { Supervised, SupervisedProgram } from './supervise.ts';
import { superviseProgram } from './supervise.ts';

/** The daemons of this launcher, running. */
export interface RunningDaemons {
  readonly name: string;
  /** Where the daemon listens, or will. */
  readonly socketPath: string;
  readonly daemon: Supervised;
  /** True for the pid of a daemon that runs now. */
  owns(pid: number): boolean;
  /** Kills them; resolves when they are gone. QEMU is not theirs to take along. */
  stop(): Promise<void>;
}

/** What starting them needs. */
export interface StartDaemonsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly verbosity: number;
  /** Writes one line of JSON where the launcher logs. */
  readonly writeLine: (line: string) => void;
}

function environmentOf(flags: LauncherFlags, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (!flags.runAsNonroot) return env;
  return {
    ...env,
    XDG_CACHE_HOME: env['XDG_CACHE_HOME'] ?? flags.privateDir,
    XDG_CONFIG_HOME: env['XDG_CONFIG_HOME'] ?? flags.privateDir,
    XDG_RUNTIME_DIR: env['XDG_RUNTIME_DIR'] ?? join(flags.libvirtRunDir, '..'),
  };
}

/**
 * Writes libvirt's configuration, starts its daemons and keeps them running; their log lines become the launcher's.
 *
 * @throws {LauncherError} `LibvirtUnavailable` when the image has no daemon or the files cannot be written
 * @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:410
 */
export function startLibvirtDaemons(
  flags: LauncherFlags,
  env: NodeJS.ProcessEnv,
  deps: StartDaemonsDeps,
): RunningDaemons {
  const found = detectLibvirtDaemon();
  const paths = launcherPaths(flags);
  const filters = decideLogFilters({
    custom: flags.libvirtLogFilters,
    verbosity: env['VIRT_LAUNCHER_LOG_VERBOSITY'],
    isDebug: env['LIBVIRT_DEBUG_LOGS'] !== undefined,
  });
  if (filters !== undefined) deps.log.info(`Enabling libvirt log filters: ${filters}`);
  const input = {
    logFilters: filters,
    hasVirtlogd: found.virtlogdPath !== undefined,
    hasHugepages: existsSync('/dev/hugepages'),
    debugVirtiofsd: env['VIRTIOFSD_DEBUG_LOGS'] === '1',
    sharedFilesystems: env['SHARED_FILESYSTEM_PATHS'],
  };
  writeDaemonConfig(flags, input, deps.log);
  if (flags.libvirtHookServerAndClient) installHookClient(flags.libvirtEtcDir);
  const onLine = (line: string): void => {
    const parsed = parseLibvirtLine(line, deps.verbosity, new Date().toISOString().replace('Z', '000Z'));
    if (parsed !== undefined) deps.writeLine(renderForwarded(parsed));
  };
  const daemonEnv = environmentOf(flags, env);
  const programOf = (name: string, path: string, conf: string): SupervisedProgram => ({
    ...{ name, path, args: ['-f', conf], env: daemonEnv, onLine },
  });
  const supervise = (program: SupervisedProgram): Supervised => superviseProgram(program, deps.clock, deps.log);
  const beforeRestart = (): Promise<void> => healDomainStatus(paths.domainStatusFile, deps.log);
  const virtlogd =
    found.virtlogdPath === undefined
      ? undefined
      : supervise(programOf('virtlogd', found.virtlogdPath, paths.virtlogdConf));
  const daemon = supervise({ ...programOf(found.name, found.path, paths.daemonConf), beforeRestart });
  return {
    name: found.name,
    socketPath: join(flags.libvirtRunDir, found.socketName),
    daemon,
    owns: (pid) => pid === daemon.pid || pid === virtlogd?.pid,
    async stop() {
      await Promise.all([daemon.stop(), virtlogd?.stop()]);
    },
  };
}
