import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LauncherPod, LauncherPodOptions } from './sandbox.ts';
import { startLauncherPod } from './sandbox.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const MONITOR = join(ROOT, '.cache/native/virt-launcher-monitor');
const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Where the image has it. */
const MONITOR_PATH = '/usr/bin/virt-launcher-monitor';

/** What stands at `/usr/bin/virt-launcher` when the monitor is to start the launcher itself. */
export const REAL_LAUNCHER = `exec ${process.execPath} -C @virtwire/source ${MAIN} "$@"`;

/** Compiles the monitor, unless what is there is up to date. */
export function buildMonitor(): void {
  execFileSync('sh', [join(ROOT, 'deploy/native/build.sh')], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** A pod with the monitor as process 1, started with the capabilities and the user of a compute container. */
export interface MonitorPodOptions extends Pick<LauncherPodOptions, 'asRoot' | 'env'> {
  /** Shell script at `/usr/bin/virt-launcher`; undefined for none. */
  readonly launcher: string | undefined;
  readonly flags?: readonly string[];
  /** Further files of /usr/bin, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Starts the monitor in a fresh pod. */
export async function startMonitorPod(options: MonitorPodOptions): Promise<LauncherPod> {
  const { launcher, flags = [], files = {}, ...rest } = options;
  const programs = mkdtempSync(join(tmpdir(), 'virtwire-programs-'));
  copyFileSync(MONITOR, join(programs, 'virt-launcher-monitor'));
  const scripts = launcher === undefined ? files : { ...files, 'virt-launcher': `#!/bin/sh\n${launcher}\n` };
  for (const [name, text] of Object.entries(scripts)) writeFileSync(join(programs, name), text, { mode: 0o755 });
  const pod = await startLauncherPod(flags, { ...rest, command: [MONITOR_PATH], programs });
  return {
    ...pod,
    async [Symbol.asyncDispose]() {
      await pod[Symbol.asyncDispose]();
      rmSync(programs, { recursive: true, force: true });
    },
  };
}
