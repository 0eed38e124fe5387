const L4 = '3:remote 4:event 3:util.json 3:util.object 3:util.dbus 3:util.netlink 3:node_device 3:rpc 3:access';
const L3 = ' 3:util.threadjob 3:cpu.cpu';
const L2 = ' 3:qemu.qemu_monitor';
const L1 = ' 3:qemu.qemu_monitor_json 3:conf.domain_addr';
const EVERYTHING_ELSE = ' 1:*';

/** What decides how much libvirt logs. */
export interface LogFilterInput {
  /** Value of the flag `--libvirt-log-filters`. */
  readonly custom: string;
  /** Value of VIRT_LAUNCHER_LOG_VERBOSITY. */
  readonly verbosity: string | undefined;
  /** LIBVIRT_DEBUG_LOGS is defined, with whatever value. */
  readonly isDebug: boolean;
}

/**
 * libvirt's log filters; undefined leaves its default.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go
 */
export function decideLogFilters({ custom, verbosity, isDebug }: LogFilterInput): string | undefined {
  if (custom !== '') return custom;
  let level = verbosity !== undefined && /^[+-]?\d+$/.test(verbosity) ? Number(verbosity) : -1;
  if (level < 5) {
    if (!isDebug) return undefined;
    level = 10;
  }
  if (level === 5) return L4 + L3 + L2 + L1 + EVERYTHING_ELSE;
  if (level === 6) return L4 + L3 + L2 + EVERYTHING_ELSE;
  if (level === 7) return L4 + L3 + EVERYTHING_ELSE;
  return L4 + EVERYTHING_ELSE;
}
