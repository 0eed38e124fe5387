import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Logger } from '@virtwire/telemetry';
import type { LauncherFlags } from '../config/flags.ts';
import { launcherPaths, QEMU_UID } from '../config/paths.ts';
import { LauncherError } from '../errors.ts';

/** What the written configuration depends on beside the flags. */
export interface DaemonConfigInput {
  readonly logFilters: string | undefined;
  readonly hasVirtlogd: boolean;
  readonly hasHugepages: boolean;
  readonly debugVirtiofsd: boolean;
  /** Colon-separated directories that lie on shared file systems; undefined when the variable is not set. */
  readonly sharedFilesystems: string | undefined;
}

/** Settings of KubeVirt's image; used where /etc/libvirt says nothing about a key. */
const QEMU_CONF_BASE: readonly (readonly [string, string])[] = [
  ['vnc_listen', '"0.0.0.0"'],
  ['vnc_tls', '0'],
  ['vnc_sasl', '0'],
  ['user', `"+${QEMU_UID}"`],
  ['group', `"+${QEMU_UID}"`],
  ['dynamic_ownership', '1'],
  ['remember_owner', '0'],
  ['namespaces', '[ ]'],
  ['cgroup_controllers', '[ ]'],
];
const DAEMON_CONF_BASE: readonly (readonly [string, string])[] = [
  ['listen_tls', '0'],
  ['listen_tcp', '0'],
  ['auth_unix_rw', '"none"'],
  ['log_outputs', '"1:stderr"'],
];

function withDefaults(text: string, defaults: readonly (readonly [string, string])[]): string {
  const missing = defaults.filter(([key]) => !new RegExp(`^\\s*${key}\\s*=`, 'm').test(text));
  const end = text === '' || text.endsWith('\n') ? '' : '\n';
  return text + end + missing.map(([key, value]) => `${key} = ${value}\n`).join('');
}

/**
 * libvirt's QEMU driver configuration: what the image says, KubeVirt's settings where it says nothing, and this pod's.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go
 */
export function renderQemuConf(base: string, input: DaemonConfigInput): string {
  const handler: readonly [string, string] = ['stdio_handler', input.hasVirtlogd ? '"logd"' : '"file"'];
  const settings: (readonly [string, string])[] = [
    ...(input.hasHugepages ? [['hugetlbfs_mount', '"/dev/hugepages"'] as const] : []),
    ...(input.debugVirtiofsd ? [['virtiofsd_debug', '1'] as const] : []),
  ];
  if (input.sharedFilesystems !== undefined) {
    const dirs = input.sharedFilesystems.split(':').map((dir) => JSON.stringify(dir));
    settings.push(['shared_filesystems', `[ ${dirs.join(', ')} ]`]);
  }
  return withDefaults(base, [handler, ...QEMU_CONF_BASE, ...settings]);
}

/** Configuration of the daemon itself, for virtqemud and libvirtd alike. */
export function renderDaemonConf(base: string, input: DaemonConfigInput): string {
  const filters: readonly (readonly [string, string])[] =
    input.logFilters === undefined ? [] : [['log_filters', JSON.stringify(input.logFilters)]];
  return withDefaults(base, [...DAEMON_CONF_BASE, ...filters]);
}

/** Text of a file of the image; empty when there is none, or one that only root may read, as Debian's qemu.conf. */
function readIfThere(path: string, log: Logger): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (caught) {
    const { code } = caught as NodeJS.ErrnoException;
    if (code === 'ENOENT') return '';
    if (code !== 'EACCES') throw caught;
    log.warn(`${path} cannot be read, its settings are not taken over`);
    return '';
  }
}

/**
 * Writes the configuration files that the daemons of this launcher read.
 *
 * @throws {LauncherError} `LibvirtUnavailable` with the path
 */
export function writeDaemonConfig(flags: LauncherFlags, input: DaemonConfigInput, log: Logger): void {
  const paths = launcherPaths(flags);
  const write = (path: string, base: string, render: typeof renderQemuConf): void => {
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
      writeFileSync(path, render(readIfThere(base, log), input), { mode: 0o644 });
    } catch (caught) {
      throw LauncherError.from(caught, 'LibvirtUnavailable', `failed to write ${path}: `);
    }
  };
  write(paths.qemuConf, join(flags.libvirtEtcDir, 'qemu.conf'), renderQemuConf);
  write(paths.daemonConf, join(flags.libvirtEtcDir, 'virtqemud.conf'), renderDaemonConf);
  if (input.hasVirtlogd) write(paths.virtlogdConf, join(flags.libvirtEtcDir, 'virtlogd.conf'), renderVirtlogdConf);
}

function renderVirtlogdConf(base: string): string {
  return withDefaults(base, [['log_outputs', '"1:stderr"']]);
}
