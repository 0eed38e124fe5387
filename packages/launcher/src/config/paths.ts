import { join } from 'node:path';
import { domainName } from '@virtwire/vm-model';
import type { LauncherFlags } from './flags.ts';

/** uid and gid of the user `qemu` inside a launcher pod. */
export const QEMU_UID = 107;

/** Where this launcher keeps and finds its files. Derived from the flags alone. */
export interface LauncherPaths {
  readonly socketsDir: string;
  readonly initSocket: string;
  readonly readySocket: string;
  readonly notifyPipe: string;
  /** Where the pod gets the descriptor for IOMMUFD, if the node has one for it. */
  readonly iommuSocket: string;
  readonly vmiDir: string;
  readonly serialLog: string;
  readonly seaBiosPipe: string;
  readonly daemonConf: string;
  readonly virtlogdConf: string;
  readonly qemuConf: string;
  /** Socket directory of the libvirt daemon; which file in it depends on the daemon. */
  readonly libvirtRunDir: string;
  readonly qemuPidFile: string;
  /** What the libvirt daemon notes of the running domain, for its successor. */
  readonly domainStatusFile: string;
  readonly qemuLogFile: string;
  /** State of emulated TPMs. */
  readonly tpmStateDir: string;
}

/** @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:159 and virtwrap/util/libvirt_helper.go */
export function launcherPaths(flags: LauncherFlags): LauncherPaths {
  const socketsDir = join(flags.kubevirtShareDir, 'sockets');
  const vmiDir = join(flags.privateDir, flags.uid);
  const domain = domainName(flags.namespace, flags.name);
  const nonroot = flags.runAsNonroot;
  const runFiles = join(flags.libvirtRunDir, 'qemu', ...(nonroot ? ['run'] : []), domain);
  return {
    socketsDir,
    initSocket: join(socketsDir, 'launcher-init-sock'),
    readySocket: join(socketsDir, 'launcher-sock'),
    notifyPipe: join(flags.kubevirtShareDir, 'domain-notify-pipe.sock'),
    iommuSocket: join(flags.kubevirtShareDir, 'iommufd.sock'),
    vmiDir,
    serialLog: join(vmiDir, 'virt-serial0-log'),
    seaBiosPipe: join(flags.privateDir, 'QEMUSeaBiosDebugPipe'),
    daemonConf: join(flags.libvirtRunDir, 'virtqemud.conf'),
    virtlogdConf: join(flags.libvirtRunDir, 'virtlogd.conf'),
    qemuConf: nonroot ? join(flags.privateDir, 'libvirt', 'qemu.conf') : join(flags.libvirtEtcDir, 'qemu.conf'),
    libvirtRunDir: flags.libvirtRunDir,
    qemuPidFile: `${runFiles}.pid`,
    domainStatusFile: `${runFiles}.xml`,
    qemuLogFile: nonroot
      ? join(flags.privateDir, 'libvirt', 'qemu', 'log', `${domain}.log`)
      : join('/var/log/libvirt/qemu', `${domain}.log`),
    tpmStateDir: nonroot ? join(flags.privateDir, 'libvirt', 'qemu', 'swtpm') : '/var/lib/libvirt/swtpm',
  };
}
