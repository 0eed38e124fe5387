import { join } from 'node:path';
import type { LauncherFlags } from './flags.ts';

/** uid and gid of the user `qemu` inside a launcher pod. */
export const QEMU_UID = 107;

/** Where this launcher keeps and finds its files. Derived from the flags alone. */
export interface LauncherPaths {
  readonly socketsDir: string;
  readonly initSocket: string;
  readonly readySocket: string;
  readonly notifyPipe: string;
  readonly vmiDir: string;
  readonly serialLog: string;
  readonly seaBiosPipe: string;
  readonly daemonConf: string;
  readonly virtlogdConf: string;
  readonly qemuConf: string;
  /** Socket directory of the libvirt daemon; which file in it depends on the daemon. */
  readonly libvirtRunDir: string;
  readonly qemuPidFile: string;
  readonly qemuLogFile: string;
}

/**
 * Libvirt's name of the domain of a VMI.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go
 */
export function domainNameOf(namespace: string, name: string): string {
  return `${namespace}_${name}`;
}

/** Namespace and name of a VMI from its domain's name: split at the first underscore; without one it lies in `default`. */
export function parseDomainName(domainName: string): { namespace: string; name: string } {
  const at = domainName.indexOf('_');
  if (at < 0) return { namespace: 'default', name: domainName };
  return { namespace: domainName.slice(0, at), name: domainName.slice(at + 1) };
}

/** @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:159 and virtwrap/util/libvirt_helper.go */
export function launcherPaths(flags: LauncherFlags): LauncherPaths {
  const socketsDir = join(flags.kubevirtShareDir, 'sockets');
  const vmiDir = join(flags.privateDir, flags.uid);
  const domainName = domainNameOf(flags.namespace, flags.name);
  const nonroot = flags.runAsNonroot;
  return {
    socketsDir,
    initSocket: join(socketsDir, 'launcher-init-sock'),
    readySocket: join(socketsDir, 'launcher-sock'),
    notifyPipe: join(flags.kubevirtShareDir, 'domain-notify-pipe.sock'),
    vmiDir,
    serialLog: join(vmiDir, 'virt-serial0-log'),
    seaBiosPipe: join(flags.privateDir, 'QEMUSeaBiosDebugPipe'),
    daemonConf: join(flags.libvirtRunDir, 'virtqemud.conf'),
    virtlogdConf: join(flags.libvirtRunDir, 'virtlogd.conf'),
    qemuConf: nonroot ? join(flags.privateDir, 'libvirt', 'qemu.conf') : join(flags.libvirtEtcDir, 'qemu.conf'),
    libvirtRunDir: flags.libvirtRunDir,
    qemuPidFile: join(flags.libvirtRunDir, 'qemu', ...(nonroot ? ['run'] : []), `${domainName}.pid`),
    qemuLogFile: nonroot
      ? join(flags.privateDir, 'libvirt', 'qemu', 'log', `${domainName}.log`)
      : join('/var/log/libvirt/qemu', `${domainName}.log`),
  };
}
