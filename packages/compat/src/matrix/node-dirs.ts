import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Name of the node that all cells play. */
export const NODE_NAME = 'node01';

/** One pod of the cell's node: what the handler and what the launcher see of it. */
export interface PodDirs {
  readonly podUid: string;
  /** The emptyDir of the command socket, below the node's pods directory. */
  readonly socketsDir: string;
  /** The root of the pod's file system as the handler enters it. */
  readonly root: string;
  /** The pod's `/var/run/kubevirt`. */
  readonly shareDir: string;
}

/** The directories of a node, all below one short path: socket paths are limited. */
export interface NodeDirs extends Disposable {
  readonly root: string;
  readonly podsDir: string;
  readonly shareDir: string;
  readonly privateDir: string;
  readonly podRoots: string;
  pod(podUid: string): PodDirs;
}

/** Makes a node's directories. `parent` must be short. */
export function createNodeDirs(parent = '/tmp'): NodeDirs {
  const root = mkdtempSync(join(parent, 'vc'));
  const dirs = {
    podsDir: join(root, 'p'),
    shareDir: join(root, 's'),
    privateDir: join(root, 's-private'),
    podRoots: join(root, 'r'),
  };
  for (const path of Object.values(dirs)) mkdirSync(path);
  const pods = new Map<string, PodDirs>();
  return {
    root,
    ...dirs,
    pod(podUid) {
      const known = pods.get(podUid);
      if (known !== undefined) return known;
      const made = createPod(dirs.podRoots, dirs.podsDir, podUid);
      pods.set(podUid, made);
      return made;
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

function createPod(podRoots: string, podsDir: string, podUid: string): PodDirs {
  const socketsDir = join(podsDir, podUid, 'volumes/kubernetes.io~empty-dir/sockets');
  const podRoot = join(podRoots, podUid);
  const shareDir = join(podRoot, 'var/run/kubevirt');
  mkdirSync(socketsDir, { recursive: true });
  mkdirSync(dirname(shareDir), { recursive: true });
  mkdirSync(shareDir);
  // The same emptyDir, mounted in the container.
  symlinkSync(socketsDir, join(shareDir, 'sockets'));
  return { podUid, socketsDir, root: podRoot, shareDir };
}
