import { accessSync, chmodSync, chownSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** How to run a prepared daemon. */
export interface DaemonCommand {
  readonly program: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly uri: string;
  readonly socketPath: string;
  /** Where the daemon keeps one `NAME.pid` for each running guest. */
  readonly guestPidDirectory: string;
}

/** Where and what to prepare. */
export interface DaemonSetup {
  readonly directory: string;
  readonly program: string;
  readonly configuration: readonly string[];
}

const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The path of a program, undefined when it is not installed. */
export function findTool(name: string): string | undefined {
  const candidates = name.includes('/') ? [name] : SYSTEM_PATH.split(':').map((directory) => join(directory, name));
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Opening a console makes a lock file there, which a killed daemon leaves behind. */
const LOCK = ['lock', '/var/lock'] as const;

/** Each host directory of libvirt, and the folder that is bound over it. */
const BOUND = [
  ['etc', '/etc/libvirt'],
  ['lib', '/var/lib/libvirt'],
  ['cache', '/var/cache/libvirt'],
  ['log', '/var/log/libvirt'],
  ['run', '/run/libvirt'],
  LOCK,
] as const;

// Paths come as arguments: nothing is put into the script's text.
const BIND_AND_EXEC = `
while [ "$1" != -- ]; do
  [ -d "$1" ] && mkdir -p "$2"
  mount --bind "$1" "$2" || exit 1
  shift 2
done
shift
exec "$@"
`;

/** A privileged daemon in a mount namespace of its own. */
export function prepareSystem(setup: DaemonSetup): DaemonCommand {
  const { directory, program } = setup;
  for (const name of ['sock', ...BOUND.map(([folder]) => folder)]) mkdirSync(join(directory, name));
  writeFileSync(join(directory, 'etc/qemu.conf'), QEMU_CONFIGURATION);
  writeConfiguration(setup);
  const binds = BOUND.flatMap(([folder, target]) => [join(directory, folder), target]);
  const users = writeUserFiles(directory).flatMap(([copy, target]) => [copy, target]);
  const daemon = [program, '-f', join(directory, 'daemon.conf'), '-p', join(directory, 'daemon.pid')];
  return {
    program,
    ...inMountNamespace([...binds, ...users], daemon),
    environment: { PATH: SYSTEM_PATH },
    uri: 'qemu:///system',
    socketPath: join(directory, 'sock', socketName(program)),
    guestPidDirectory: join(directory, 'run/qemu'),
  };
}

/** An unprivileged daemon under another user, with lock files of its own. */
export function prepareSession(setup: DaemonSetup, uid: number): DaemonCommand {
  const { directory, program } = setup;
  for (const name of ['sock', 'runtime', 'config', 'config/libvirt', 'cache', 'data', 'home', LOCK[0]]) {
    mkdirSync(join(directory, name), { mode: 0o700 });
    chownSync(join(directory, name), uid, uid);
  }
  writeFileSync(join(directory, 'config/libvirt/qemu.conf'), 'stdio_handler = "file"\n', { mode: 0o644 });
  writeConfiguration(setup);
  chmodSync(join(directory, 'daemon.conf'), 0o644);
  const identity = [`--reuid=${String(uid)}`, `--regid=${String(uid)}`, '--clear-groups'];
  const pidFile = join(directory, 'runtime', 'daemon.pid');
  return {
    program,
    ...inMountNamespace(
      [join(directory, LOCK[0]), LOCK[1]],
      [
        findTool('setpriv') ?? 'setpriv',
        ...identity,
        ...[program, '-f', join(directory, 'daemon.conf'), '-p', pidFile],
      ],
    ),
    environment: {
      PATH: SYSTEM_PATH,
      HOME: join(directory, 'home'),
      XDG_RUNTIME_DIR: join(directory, 'runtime'),
      XDG_CONFIG_HOME: join(directory, 'config'),
      XDG_CACHE_HOME: join(directory, 'cache'),
      XDG_DATA_HOME: join(directory, 'data'),
    },
    uri: 'qemu:///session',
    socketPath: join(directory, 'sock', socketName(program)),
    guestPidDirectory: join(directory, 'runtime/libvirt/qemu/run'),
  };
}

function inMountNamespace(
  binds: readonly string[],
  command: readonly string[],
): { readonly file: string; readonly args: readonly string[] } {
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', BIND_AND_EXEC, 'sh', ...binds, '--', ...command];
  return { file: findTool('unshare') ?? 'unshare', args };
}

const QEMU_CONFIGURATION = `
security_driver = "none"
user = "root"
group = "root"
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
`;

function writeConfiguration({ directory, program, configuration }: DaemonSetup): void {
  const lines = [
    `unix_sock_dir = "${join(directory, 'sock')}"`,
    'auth_unix_rw = "none"',
    'auth_unix_ro = "none"',
    'log_outputs = "2:stderr"',
    ...(basename(program) === 'libvirtd' ? ['listen_tls = 0', 'listen_tcp = 0'] : []),
    ...configuration,
  ];
  writeFileSync(join(directory, 'daemon.conf'), `${lines.join('\n')}\n`);
}

function socketName(program: string): string {
  return basename(program) === 'libvirtd' ? 'libvirt-sock' : `${basename(program)}-sock`;
}

/**
 * The QEMU driver resolves its built-in user and group before it reads qemu.conf, and does not start without them.
 * Where the distribution's package that makes them is absent, copies of the user files get them.
 */
function writeUserFiles(directory: string): readonly (readonly [copy: string, target: string])[] {
  const passwd = readFileSync('/etc/passwd', 'utf8');
  const group = readFileSync('/etc/group', 'utf8');
  const missing = ['kvm', 'libvirt-qemu'].filter((name) => !group.includes(`\n${name}:`));
  if (passwd.includes('\nlibvirt-qemu:') && missing.length === 0) return [];
  const copies = [join(directory, 'passwd'), join(directory, 'group')] as const;
  const user = passwd.includes('\nlibvirt-qemu:') ? '' : 'libvirt-qemu:x:64055:64055::/:/usr/sbin/nologin\n';
  writeFileSync(copies[0], passwd + user);
  writeFileSync(copies[1], group + missing.map((name, i) => `${name}:x:${String(64_055 + i)}:\n`).join(''));
  return [
    [copies[0], '/etc/passwd'],
    [copies[1], '/etc/group'],
  ];
}
