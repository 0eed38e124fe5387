import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';

/** Where a node without Kubernetes keeps its things unless told otherwise. */
export const DEFAULT_STATE_DIR = '/var/lib/virtwire';

/** Paths and names of one standalone node; two nodes with different state directories share none of them. */
export interface NodeLayout {
  readonly stateDir: string;
  /** What does not outlive a boot: sockets, mounts, runc's state, CNI leases. */
  readonly runDir: string;
  /** Pod directories on disk, as a kubelet's `pods`. */
  readonly podsDir: string;
  /** The same directory, mounted where the path of a socket in it fits the kernel's 107 bytes. */
  readonly podsMount: string;
  readonly sandboxesDir: string;
  readonly runcRoot: string;
  readonly cniDir: string;
  readonly logsDir: string;
  /** Disks of claims: `<namespace>/<claim>/disk.img`. */
  readonly claimsDir: string;
  readonly recordsDir: string;
  readonly eventsDir: string;
  readonly vmisDir: string;
  readonly journalFile: string;
  readonly lockFile: string;
  /** Handler's KubeVirt directories. */
  readonly handlerShareDir: string;
  readonly handlerPrivateDir: string;
  readonly handlerLog: string;
  readonly bridge: string;
  /** Number that picks the pod network; see {@link candidateSubnets}. */
  readonly seed: number;
  readonly cgroupParent: string;
}

/** The layout that follows from a state directory. */
export function nodeLayout(directory = DEFAULT_STATE_DIR): NodeLayout {
  const stateDir = resolve(directory);
  const isDefault = stateDir === DEFAULT_STATE_DIR;
  const hash = createHash('sha256').update(stateDir).digest();
  const id = hash.toString('hex').slice(0, 8);
  const runDir = isDefault ? '/run/virtwire' : `/run/virtwire-${id}`;
  return {
    stateDir,
    runDir,
    podsDir: join(stateDir, 'pods'),
    podsMount: isDefault ? '/run/virtwire/p' : `/run/vw${id}`,
    sandboxesDir: join(runDir, 'sandboxes'),
    runcRoot: join(runDir, 'runc'),
    cniDir: join(runDir, 'cni'),
    logsDir: join(stateDir, 'logs'),
    claimsDir: join(stateDir, 'claims'),
    recordsDir: join(stateDir, 'records'),
    eventsDir: join(stateDir, 'events'),
    vmisDir: join(stateDir, 'vmis'),
    journalFile: join(stateDir, 'journal.jsonl'),
    lockFile: join(stateDir, 'node.lock'),
    handlerShareDir: join(runDir, 'kubevirt'),
    handlerPrivateDir: join(runDir, 'kubevirt-private'),
    handlerLog: join(stateDir, 'logs', 'handler.log'),
    bridge: isDefault ? 'virtwire0' : `vw${id}`,
    seed: isDefault ? 0 : hash.readUInt16BE(8),
    cgroupParent: isDefault ? '/virtwire' : `/virtwire-${id}`,
  };
}

const FIRST_NET = 144;
const NETS = 80;

/** Pod networks to try in order: /24s from 10.144.0.0 to 10.223.255.0, starting where the seed says. */
export function* candidateSubnets(seed: number, count = 64): Generator<string> {
  for (let i = 0; i < count; i += 1) {
    const n = (seed + i * 257) % (NETS * 256);
    yield `10.${FIRST_NET + Math.floor(n / 256)}.${n % 256}.0/24`;
  }
}
