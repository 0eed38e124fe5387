import type { HostDevice } from './devices.ts';

/** A bind mount of the sandbox beyond the fixed ones. */
export interface SandboxBind {
  readonly source: string;
  readonly destination: string;
  readonly readonly: boolean;
}

/** What one launcher sandbox consists of; paths are on the host unless named otherwise. */
export interface SandboxSpec {
  readonly podUid: string;
  readonly hostname: string;
  readonly rootfs: string;
  /** Directory that holds the pod's emptyDirs, by volume name. */
  readonly emptyDirs: string;
  /** Directory with passwd, group, hosts, hostname and resolv.conf of the pod. */
  readonly etcDir: string;
  readonly netnsPath: string;
  readonly args: readonly string[];
  /** Directory of programs that is looked into before the usual ones. */
  readonly binDir: string;
  /** `NAME=value`, after PATH and HOSTNAME. */
  readonly env: readonly string[];
  readonly binds: readonly SandboxBind[];
  readonly devices: readonly HostDevice[];
  /** uid and gid of the launcher: 107, or 0 for a root-mode VMI. */
  readonly user: number;
  readonly cgroupsPath: string;
}

/** An OCI mount. */
interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

/** The emptyDirs of a launcher pod with their mount path, in mount order. `@source KubeVirt v1.9.0 pkg/virt-controller/services/rendervolumes.go` */
export const POD_VOLUMES: readonly { readonly name: string; readonly path: string; readonly propagation: string }[] = [
  { name: 'private', path: '/var/run/kubevirt-private', propagation: 'rprivate' },
  { name: 'public', path: '/var/run/kubevirt', propagation: 'rprivate' },
  { name: 'sockets', path: '/var/run/kubevirt/sockets', propagation: 'rprivate' },
  { name: 'libvirt-runtime', path: '/var/run/libvirt', propagation: 'rprivate' },
  { name: 'ephemeral-disks', path: '/var/run/kubevirt-ephemeral-disks', propagation: 'rprivate' },
  { name: 'container-disks', path: '/var/run/kubevirt/container-disks', propagation: 'rslave' },
  { name: 'hotplug-disks', path: '/var/run/kubevirt/hotplug-disks', propagation: 'rslave' },
];

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const CAPABILITIES = ['CAP_NET_BIND_SERVICE'];

/** Devices that every container has; runc makes the nodes, the cgroup must allow them. */
const DEFAULT_DEVICE_RULES = [
  { type: 'c', major: 1, minor: 3, access: 'rwm' },
  { type: 'c', major: 1, minor: 5, access: 'rwm' },
  { type: 'c', major: 1, minor: 7, access: 'rwm' },
  { type: 'c', major: 1, minor: 8, access: 'rwm' },
  { type: 'c', major: 1, minor: 9, access: 'rwm' },
  { type: 'c', major: 5, minor: 0, access: 'rwm' },
  { type: 'c', major: 5, minor: 2, access: 'rwm' },
  { type: 'c', major: 136, access: 'rwm' },
];

const MASKED_PATHS = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
/**
 * QEMUs that Debian packages with the one for this machine and a launcher image does not have: libvirt would probe each of
 * them before its first answer.
 */
const OTHER_QEMUS = ['/usr/bin/qemu-system-i386'];
const READONLY_PATHS = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

/** The host's own directories that a launcher has no business to see; empty in the sandbox. */
const HIDDEN_PATHS = ['/root', '/home', '/srv', '/mnt', '/media'];

function tmpfs(destination: string, mode: string, sizeKiB: number): OciMount {
  const options = ['nosuid', 'nodev', `mode=${mode}`, `size=${sizeKiB}k`];
  return { destination, type: 'tmpfs', source: 'tmpfs', options };
}

function kernelMounts(): OciMount[] {
  const pts = ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'];
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    {
      destination: '/dev',
      type: 'tmpfs',
      source: 'tmpfs',
      options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'],
    },
    { destination: '/dev/pts', type: 'devpts', source: 'devpts', options: pts },
    { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: ['nosuid', 'noexec', 'nodev'] },
    {
      destination: '/dev/shm',
      type: 'tmpfs',
      source: 'shm',
      options: ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k'],
    },
    { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
    {
      destination: '/sys/fs/cgroup',
      type: 'cgroup',
      source: 'cgroup',
      options: ['nosuid', 'noexec', 'nodev', 'relatime', 'ro'],
    },
  ];
}

function podMounts(spec: SandboxSpec): OciMount[] {
  const etc = ['passwd', 'group', 'hosts', 'hostname', 'resolv.conf'].map((name) =>
    bindMount({ source: `${spec.etcDir}/${name}`, destination: `/etc/${name}`, readonly: true }, 'rprivate'),
  );
  const volumes = POD_VOLUMES.map(({ name, path, propagation }) =>
    bindMount({ source: `${spec.emptyDirs}/${name}`, destination: path, readonly: false }, propagation),
  );
  return [...etc, ...volumes];
}

function bindMount(bind: SandboxBind, propagation: string): OciMount {
  const options = ['rbind', propagation, bind.readonly ? 'ro' : 'rw'];
  return { destination: bind.destination, type: 'bind', source: bind.source, options };
}

function linuxPart(spec: SandboxSpec): object {
  const allowed = spec.devices.map((device) => ({
    allow: true,
    type: 'c',
    major: device.major,
    minor: device.minor,
    access: 'rwm',
  }));
  return {
    cgroupsPath: spec.cgroupsPath,
    namespaces: [
      { type: 'pid' },
      { type: 'mount' },
      { type: 'ipc' },
      { type: 'uts' },
      { type: 'cgroup' },
      { type: 'network', path: spec.netnsPath },
    ],
    devices: spec.devices.map((device) => ({ type: 'c', ...device, fileMode: 0o660, uid: 0, gid: 0 })),
    resources: {
      devices: [
        { allow: false, access: 'rwm' },
        ...DEFAULT_DEVICE_RULES.map((rule) => ({ allow: true, ...rule })),
        ...allowed,
      ],
    },
    maskedPaths: [...MASKED_PATHS, ...OTHER_QEMUS],
    readonlyPaths: READONLY_PATHS,
  };
}

/**
 * The OCI runtime configuration of a launcher's compute container: what a kubelet makes of the pod that virt-controller
 * renders, without a kubelet.
 *
 * No oomScoreAdj is set: machines inside a sandbox of their own refuse a negative one. No cpu shares are set either: a
 * kubelet's 100m weigh against other pods, here they would weigh against every process of the machine.
 *
 * @source KubeVirt v1.9.0 pkg/virt-controller/services/template.go:396
 */
export function renderOciConfig(spec: SandboxSpec): object {
  const capabilities = spec.user === 0 ? [...CAPABILITIES, 'CAP_SYS_NICE'] : CAPABILITIES;
  return {
    ociVersion: '1.0.2',
    hostname: spec.hostname,
    root: { path: spec.rootfs, readonly: false },
    process: {
      terminal: false,
      user: { uid: spec.user, gid: spec.user, additionalGids: [107] },
      args: spec.args,
      env: [`PATH=${spec.binDir}:${PATH}`, `HOSTNAME=${spec.hostname}`, ...spec.env],
      cwd: '/',
      noNewPrivileges: true,
      // Ambient as well: there is no file capability on a launcher that runs from a checkout.
      capabilities: {
        bounding: capabilities,
        effective: capabilities,
        permitted: capabilities,
        inheritable: capabilities,
        ambient: capabilities,
      },
    },
    mounts: [
      ...kernelMounts(),
      ...HIDDEN_PATHS.map((path) => tmpfs(path, '0755', 64)),
      tmpfs('/run', '0755', 16_384),
      tmpfs('/tmp', '1777', 65_536),
      ...podMounts(spec),
      ...spec.binds.map((bind) => bindMount(bind, 'rprivate')),
    ],
    linux: linuxPart(spec),
  };
}
