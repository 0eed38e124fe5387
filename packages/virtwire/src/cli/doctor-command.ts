import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '../errors.ts';
import { probeKvm } from '../machine/kvm.ts';
import type { RunTool } from '../machine/run-tool.ts';
import { runTool, TOOL_PATH } from '../machine/run-tool.ts';
import { findInstallation } from '../sandbox/installation.ts';
import { EXIT } from './exit-codes.ts';
import type { LookRequest } from './list-commands.ts';
import { renderTable } from './output.ts';

/** How a check came out: fine, worse than it could be, or in the way of running VMs. */
type Verdict = 'ok' | 'note' | 'bad';

/** One thing that a node needs. */
interface Finding {
  readonly check: string;
  readonly verdict: Verdict;
  readonly detail: string;
  /** What to do about it; absent when it is fine. */
  readonly remedy?: string;
}

/** What checks work with. */
export interface DoctorMachine {
  readonly run: RunTool;
  readonly isRoot: boolean;
}

type Check = (machine: DoctorMachine) => Promise<Finding> | Finding;

const SETUP = 'run scripts/setup.sh';
/** Of Debian's packages, for amd64 and arm64. */
const EFI_FIRMWARE = ['/usr/share/OVMF/OVMF_CODE.fd', '/usr/share/AAVMF/AAVMF_CODE.fd'];

function findTool(names: readonly string[]): string | undefined {
  return TOOL_PATH.split(':')
    .flatMap((directory) => names.map((name) => join(directory, name)))
    .find((path) => existsSync(path));
}

function toolCheck(check: string, names: readonly string[], remedy = SETUP): Check {
  return () => {
    const path = findTool(names);
    if (path !== undefined) return { check, verdict: 'ok', detail: path };
    return { check, verdict: 'bad', detail: `${names.join(' and ')}: not installed`, remedy };
  };
}

function fileCheck(check: string, paths: readonly string[], remedy: string): Check {
  return () => {
    const path = paths.find((candidate) => existsSync(candidate));
    if (path !== undefined) return { check, verdict: 'ok', detail: path };
    return { check, verdict: 'bad', detail: `${paths.join(' or ')}: missing`, remedy };
  };
}

/** A check of something that only some VMs need. */
function forSome(check: Check): Check {
  return async (machine) => {
    const finding = await check(machine);
    return finding.verdict === 'bad' ? { ...finding, verdict: 'note' } : finding;
  };
}

function kernelCheck(check: string, works: (run: RunTool) => Promise<string>, remedy: string): Check {
  return async ({ run, isRoot }) => {
    if (!isRoot) return { check, verdict: 'note', detail: 'not tried: this process is not root', remedy: 'use sudo' };
    try {
      return { check, verdict: 'ok', detail: await works(run) };
    } catch (caught) {
      return { check, verdict: 'bad', detail: errorText(caught), remedy };
    }
  };
}

const checkRoot: Check = ({ isRoot }) =>
  isRoot
    ? { check: 'root', verdict: 'ok', detail: 'this process is root' }
    : { check: 'root', verdict: 'bad', detail: 'this process is not root', remedy: 'use sudo' };

const checkNode: Check = () => {
  const major = Number(process.versions.node.split('.')[0]);
  const detail = `Node.js ${process.versions.node}`;
  if (major >= 24) return { check: 'node', verdict: 'ok', detail };
  return { check: 'node', verdict: 'bad', detail, remedy: 'run npm run setup, and start virtwire by its own script' };
};

const checkKvm: Check = async ({ run }) => {
  const { works, reason } = await probeKvm(run);
  if (works) return { check: 'kvm', verdict: 'ok', detail: reason };
  const remedy = 'use a machine with (nested) virtualisation; until then guests are emulated (TCG), which is slow';
  return { check: 'kvm', verdict: 'note', detail: `KVM does not work: ${reason}`, remedy };
};

/** Which cgroup hierarchies are there. */
function describeCgroups(hasV2: boolean, hasV1: boolean, hasUnified: boolean): string {
  if (hasV2) return 'version 2';
  if (hasV1) return hasUnified ? 'version 1 with version 2 beside it' : 'version 1';
  return '';
}

const checkCgroups: Check = () => {
  const root = '/sys/fs/cgroup';
  const detail = describeCgroups(
    existsSync(`${root}/cgroup.controllers`),
    existsSync(`${root}/devices`),
    existsSync(`${root}/unified/cgroup.procs`),
  );
  if (detail !== '') return { check: 'cgroups', verdict: 'ok', detail };
  return { check: 'cgroups', verdict: 'bad', detail: `${root} holds none`, remedy: 'mount cgroup2 at /sys/fs/cgroup' };
};

const checkSelinux: Check = () => {
  const file = '/sys/fs/selinux/enforce';
  if (!existsSync(file)) return { check: 'selinux', verdict: 'ok', detail: 'absent' };
  const isEnforcing = readFileSync(file, 'utf8').trim() === '1';
  return { check: 'selinux', verdict: 'ok', detail: isEnforcing ? 'enforcing' : 'permissive' };
};

const checkReadable: Check = () => {
  const { root, launcher } = findInstallation();
  try {
    const file = join(root, launcher);
    accessSync(file, constants.R_OK);
    const others = [root, join(root, 'node_modules'), file].find((path) => (statSync(path).mode & 0o004) === 0);
    if (others === undefined) return { check: 'installation', verdict: 'ok', detail: root };
    const remedy = `chmod -R o+rX ${root}`;
    return { check: 'installation', verdict: 'bad', detail: `${others} cannot be read by launchers (uid 107)`, remedy };
  } catch (caught) {
    return { check: 'installation', verdict: 'bad', detail: errorText(caught), remedy: 'run npm run setup' };
  }
};

const NAT_TRIAL = `table ip trial {
  chain c {
    type nat hook prerouting priority dstnat;
    tcp dport 1 dnat to 10.0.2.2
  }
}
`;

async function tryNetwork(run: RunTool): Promise<string> {
  const name = `virtwire-doctor-${process.pid}`; // others may examine the machine at the same time
  await run('ip', ['netns', 'add', name]);
  try {
    const inside = ['-n', name];
    await run('ip', [...inside, 'link', 'add', 'br0', 'type', 'bridge']);
    await run('ip', [...inside, 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1']);
    await run('ip', [...inside, 'tuntap', 'add', 'dev', 'tap0', 'mode', 'tap']);
    await run('ip', ['netns', 'exec', name, 'nft', '-f', '-'], { input: NAT_TRIAL });
    return 'namespace, bridge, veth, tap and nftables NAT work';
  } finally {
    await run('ip', ['netns', 'delete', name]);
  }
}

async function tryOverlay(run: RunTool): Promise<string> {
  const script = `d=$(mktemp -d /tmp/virtwire-doctor-XXXXXX) && mount -t tmpfs tmpfs "$d" && mkdir "$d/u" "$d/w" "$d/m" &&
mount -t overlay -o "lowerdir=/,upperdir=$d/u,workdir=$d/w" overlay "$d/m" && test -e "$d/m/etc"`;
  // In a mount namespace of its own, so that nothing stays behind.
  await run('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script]);
  return 'an overlay of the root works';
}

/** Every check, in the order in which they are told. */
const CHECKS: readonly Check[] = [
  checkRoot,
  checkNode,
  checkReadable,
  checkKvm,
  toolCheck('qemu', ['qemu-system-x86_64', 'qemu-kvm', 'qemu-system-aarch64']),
  toolCheck('qemu-img', ['qemu-img']),
  toolCheck('libvirt daemon', ['virtqemud', 'libvirtd']),
  toolCheck('virtlogd', ['virtlogd']),
  toolCheck('runc', ['runc']),
  toolCheck('iproute2', ['ip']),
  toolCheck('nftables', ['nft']),
  toolCheck('iso tool', ['xorrisofs', 'genisoimage', 'xorriso', 'mkisofs']),
  fileCheck('cni plugins', ['/usr/lib/cni/bridge', '/opt/cni/bin/bridge'], SETUP),
  fileCheck('tun device', ['/dev/net/tun'], 'modprobe tun'),
  forSome(fileCheck('EFI firmware', EFI_FIRMWARE, 'install ovmf (qemu-efi-aarch64 on arm64) for VMs that boot by EFI')),
  forSome(toolCheck('TPM', ['swtpm_setup'], 'install swtpm and swtpm-tools for VMs with a TPM')),
  checkCgroups,
  checkSelinux,
  kernelCheck('network', tryNetwork, 'load the kernel modules bridge, veth, tun, nf_tables, nft_nat'),
  kernelCheck('overlayfs', tryOverlay, 'load the kernel module overlay; the root must not be an overlay itself'),
];

/** Tells what this machine has and lacks. */
export async function doctor(
  { json, output }: Pick<LookRequest, 'json' | 'output'>,
  machine: DoctorMachine = { run: runTool, isRoot: process.getuid?.() === 0 },
): Promise<number> {
  const findings: Finding[] = [];
  for (const check of CHECKS) findings.push(await check(machine));
  const isBad = findings.some((finding) => finding.verdict === 'bad');
  if (json) output.line(JSON.stringify(findings, null, 2));
  else {
    const rows = findings.map(({ check, verdict, detail, remedy }) => {
      return [
        verdict === 'ok' ? 'ok' : verdict.toUpperCase(),
        check,
        remedy === undefined ? detail : `${detail}: ${remedy}`,
      ];
    });
    output.line(renderTable(['', 'CHECK', 'RESULT'], rows));
    output.line(isBad ? '\nthis machine cannot run VMs yet' : '\nthis machine can run VMs');
  }
  return isBad ? EXIT.notReady : EXIT.ok;
}
