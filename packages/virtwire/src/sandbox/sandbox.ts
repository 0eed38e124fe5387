import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { isMountPoint, mount, readProcessStat } from '@virtwire/host';
import { errorText, VirtwireError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import { NODE_OWNER } from '../journal/resource.ts';
import { releaseOwner } from '../journal/undo.ts';
import type { RunTool } from '../machine/run-tool.ts';
import { TOOL_PATH } from '../machine/run-tool.ts';
import type { NodeLayout } from '../state/layout.ts';
import { addPodNetwork } from './cni.ts';
import type { HostDevice } from './devices.ts';
import { renderOciConfig } from './oci-config.ts';
import type { SandboxBind } from './oci-config.ts';
import { ensureNodeNetwork } from './node-network.ts';
import { ensureEmptyDirs, writeEtcFiles, writeImageFiles } from './pod-files.ts';

/** What runs in a sandbox and with what. */
export interface SandboxRequest {
  readonly podUid: string;
  readonly hostname: string;
  readonly args: readonly string[];
  readonly binDir: string;
  /** Script at /usr/bin/virt-launcher of the sandbox. */
  readonly launcherScript?: string | undefined;
  readonly env: readonly string[];
  readonly binds: readonly SandboxBind[];
  readonly devices: readonly HostDevice[];
  readonly user: number;
  /** File that gets the standard output and error of the sandbox, appended. */
  readonly logFile: string;
}

/** A running sandbox. */
export interface Sandbox {
  readonly podUid: string;
  readonly pid: number;
  /** With the pid it names the process for ever. */
  readonly startTicks: string;
  readonly podIp: string;
  readonly netnsPath: string;
}

/** What sandboxes are made with. */
export interface SandboxDeps {
  readonly run: RunTool;
  readonly journal: Journal;
  readonly layout: NodeLayout;
}

const UPPER_SIZE = '64m';
const NETNS_DIR = '/run/netns';

/** Name of the network namespace of a pod. */
function netnsNameOf(podUid: string): string {
  return `virtwire-${podUid}`;
}

/**
 * Binds the pods directory to its short path, on a shared mount: what the handler mounts below it must reach running
 * sandboxes. Idempotent.
 */
function ensurePodsMount({ journal, layout }: SandboxDeps): void {
  if (journal.entries(NODE_OWNER).some(({ resource }) => resource.kind === 'mount')) return;
  mkdirSync(layout.podsDir, { recursive: true, mode: 0o750 });
  journal.record(NODE_OWNER, { kind: 'directory', path: layout.runDir });
  journal.record(NODE_OWNER, { kind: 'directory', path: layout.podsMount });
  mkdirSync(layout.podsMount, { recursive: true, mode: 0o750 });
  journal.record(NODE_OWNER, { kind: 'mount', path: layout.podsMount });
  mount({ source: layout.podsDir, target: layout.podsMount, flags: ['bind'] });
  mount({ source: 'none', target: layout.podsMount, flags: ['shared'] });
}

/** An overlay of the host's root with a writable layer of its own in memory. */
function makeRootfs({ journal }: SandboxDeps, request: SandboxRequest, directory: string): string {
  const { podUid } = request;
  const layers = join(directory, 'layers');
  const rootfs = join(directory, 'rootfs');
  mkdirSync(layers, { recursive: true, mode: 0o700 });
  mkdirSync(rootfs, { recursive: true, mode: 0o755 });
  journal.record(podUid, { kind: 'mount', path: layers });
  mount({ source: 'tmpfs', target: layers, fsType: 'tmpfs', flags: ['nodev'], data: `size=${UPPER_SIZE},mode=0755` });
  const [upper, work] = [join(layers, 'upper'), join(layers, 'work')];
  mkdirSync(upper, { mode: 0o755 });
  mkdirSync(work, { mode: 0o755 });
  writeImageFiles(upper, request.launcherScript);
  journal.record(podUid, { kind: 'mount', path: rootfs });
  const data = `lowerdir=/,upperdir=${upper},workdir=${work}`;
  mount({ source: 'overlay', target: rootfs, fsType: 'overlay', data });
  return rootfs;
}

async function makeNetwork(deps: SandboxDeps, podUid: string): Promise<{ ip: string; netnsPath: string }> {
  const { run, journal, layout } = deps;
  const configFile = await ensureNodeNetwork(run, journal, layout);
  const name = netnsNameOf(podUid);
  const netnsPath = `${NETNS_DIR}/${name}`;
  if (!isMountPoint(NETNS_DIR)) journal.record(NODE_OWNER, { kind: 'netnsRoot', path: NETNS_DIR });
  journal.record(podUid, { kind: 'netns', name });
  await run('ip', ['netns', 'add', name]);
  await run('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
  const call = { containerId: podUid, netnsPath, configFile };
  journal.record(podUid, { kind: 'cni', ...call });
  const { ip } = await addPodNetwork(run, call);
  return { ip, netnsPath };
}

/** Starts the container and leaves it running on its own: it outlives this process. */
async function startContainer(deps: SandboxDeps, bundle: string, podUid: string, logFile: string): Promise<number> {
  const pidFile = join(bundle, 'pid');
  const runcLog = join(bundle, 'runc.log');
  const args = ['--root', deps.layout.runcRoot, '--log', runcLog, 'run', '--detach'];
  args.push('--bundle', bundle, '--pid-file', pidFile, podUid);
  const log = openSync(logFile, 'a', 0o640);
  try {
    const child = spawn('runc', args, { stdio: ['ignore', log, log], env: { ...process.env, PATH: TOOL_PATH } });
    const code = await new Promise<number | string>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (exit, signal) => resolve(exit ?? signal ?? 'unknown'));
    });
    if (code === 0) return Number(readFileSync(pidFile, 'utf8'));
    throw new VirtwireError('SandboxFailed', `runc ended with ${code}: ${lastLine(runcLog)}`);
  } catch (caught) {
    throw VirtwireError.from(caught, 'SandboxFailed', 'cannot start the sandbox');
  } finally {
    closeSync(log);
  }
}

function lastLine(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim().split('\n').at(-1) ?? '';
  } catch (caught) {
    return errorText(caught);
  }
}

/**
 * Builds a launcher's sandbox and starts its program: pod directories, root, network, container, in this order. All of
 * it is in the journal under the pod's UID before it is made.
 *
 * @throws {VirtwireError} `SandboxFailed`, `MissingTool`, `ToolFailed`; what was made until then is removed again.
 */
export async function createSandbox(deps: SandboxDeps, request: SandboxRequest): Promise<Sandbox> {
  const { journal, layout } = deps;
  const { podUid } = request;
  ensurePodsMount(deps);
  try {
    const directory = join(layout.sandboxesDir, podUid);
    journal.record(podUid, { kind: 'directory', path: join(layout.podsDir, podUid) });
    journal.record(podUid, { kind: 'directory', path: directory });
    ensureEmptyDirs(layout.podsDir, podUid);
    const rootfs = makeRootfs(deps, request, directory);
    const { ip, netnsPath } = await makeNetwork(deps, podUid);
    const etcDir = join(directory, 'etc');
    writeEtcFiles(etcDir, { hostname: request.hostname, ip });
    const cgroupsPath = `${layout.cgroupParent}/${podUid}`;
    const emptyDirs = join(layout.podsMount, podUid, 'volumes', 'kubernetes.io~empty-dir');
    const config = renderOciConfig({ ...request, rootfs, emptyDirs, etcDir, netnsPath, cgroupsPath });
    writeFileSync(join(directory, 'config.json'), JSON.stringify(config));
    journal.record(NODE_OWNER, { kind: 'cgroup', path: layout.cgroupParent });
    journal.record(podUid, { kind: 'cgroup', path: cgroupsPath });
    journal.record(podUid, { kind: 'container', id: podUid, runcRoot: layout.runcRoot });
    const pid = await startContainer(deps, directory, podUid, request.logFile);
    return { podUid, pid, startTicks: String(readProcessStat(pid).startTicks), podIp: ip, netnsPath };
  } catch (caught) {
    await releaseOwner(journal, deps.run, podUid).catch(() => undefined); // the first failure is the one to tell
    throw VirtwireError.from(caught, 'SandboxFailed', 'cannot build the sandbox');
  }
}

/** Removes a sandbox with everything in it. Idempotent. */
export async function removeSandbox(deps: SandboxDeps, podUid: string): Promise<void> {
  await releaseOwner(deps.journal, deps.run, podUid);
}
