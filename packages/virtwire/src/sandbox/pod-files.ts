import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from '../errors.ts';
import { POD_VOLUMES } from './oci-config.ts';

/** uid and gid of the user `qemu` in a launcher pod. */
const QEMU_ID = 107;

/** Pod directory of a pod UID, below the node's pods directory. */
export function emptyDirsOf(podsDir: string, podUid: string): string {
  return join(podsDir, podUid, 'volumes', 'kubernetes.io~empty-dir');
}

/** The launcher's cmd socket of a pod. */
export function launcherSocketOf(podsDir: string, podUid: string): string {
  return join(emptyDirsOf(podsDir, podUid), 'sockets', 'launcher-sock');
}

/**
 * Makes the emptyDirs of a launcher pod as a kubelet does: owner root, group 107 (the pod's fsGroup), mode 02777.
 *
 * @returns the directory that holds them.
 */
export function ensureEmptyDirs(podsDir: string, podUid: string): string {
  const parent = emptyDirsOf(podsDir, podUid);
  mkdirSync(parent, { recursive: true, mode: 0o750 });
  for (const { name } of POD_VOLUMES) {
    const path = join(parent, name);
    mkdirSync(path, { recursive: true });
    chownSync(path, 0, QEMU_ID);
    chmodSync(path, 0o2777);
  }
  return parent;
}

/** The host's accounts with the launcher's user `qemu` in place of whoever has its number or name there. */
export function renderAccounts(hostText: string, line: string): string {
  const [name] = line.split(':');
  const others = hostText
    .split('\n')
    .filter((entry) => entry !== '' && entry.split(':')[2] !== String(QEMU_ID) && !entry.startsWith(`${name}:`));
  return `${[...others, line].join('\n')}\n`;
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return otherwise;
    throw caught;
  }
}

/** Writes the pod's own /etc files: accounts with the user `qemu`, names, resolver. */
export function writeEtcFiles(directory: string, pod: { readonly hostname: string; readonly ip: string }): void {
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  const files: Record<string, string> = {
    passwd: renderAccounts(readOr('/etc/passwd', ''), `qemu:x:${QEMU_ID}:${QEMU_ID}:qemu user:/:/sbin/nologin`),
    group: renderAccounts(readOr('/etc/group', ''), `qemu:x:${QEMU_ID}:`),
    hosts: `127.0.0.1 localhost\n::1 localhost\n${pod.ip} ${pod.hostname}\n`,
    hostname: `${pod.hostname}\n`,
    'resolv.conf': readOr('/etc/resolv.conf', ''),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text, { mode: 0o644 });
}

/** Static libvirt settings of the launcher image. `@source KubeVirt v1.9.0 cmd/virt-launcher/qemu.conf, virtqemud.conf` */
const LIBVIRT_FILES: Readonly<Record<string, string>> = {
  'qemu.conf': `stdio_handler = "logd"
vnc_listen = "0.0.0.0"
vnc_tls = 0
vnc_sasl = 0
user = "qemu"
group = "qemu"
dynamic_ownership = 1
remember_owner = 0
namespaces = [ ]
cgroup_controllers = [ ]
`,
  'virtqemud.conf': 'listen_tls = 0\nlisten_tcp = 0\nlog_outputs = "1:stderr"\n',
  'virtlogd.conf': '',
};

/** Puts the launcher image's own files into the writable layer of a sandbox, with the script that starts the launcher if any. */
export function writeImageFiles(upperDir: string, launcherScript?: string): void {
  const directory = join(upperDir, 'etc', 'libvirt');
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(LIBVIRT_FILES)) writeFileSync(join(directory, name), text, { mode: 0o644 });
  if (launcherScript === undefined) return;
  const bin = join(upperDir, 'usr', 'bin');
  mkdirSync(bin, { recursive: true, mode: 0o755 });
  writeFileSync(join(bin, 'virt-launcher'), launcherScript, { mode: 0o755 });
}
