/** Something made on the machine that outlives the process that made it. */
export type Resource =
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'mount'; readonly path: string }
  | { readonly kind: 'netns'; readonly name: string }
  /** The directory that `ip netns` mounts on itself when it makes the first namespace. */
  | { readonly kind: 'netnsRoot'; readonly path: string }
  | { readonly kind: 'cni'; readonly containerId: string; readonly netnsPath: string; readonly configFile: string }
  | { readonly kind: 'link'; readonly name: string }
  | { readonly kind: 'nft'; readonly family: string; readonly table: string }
  | { readonly kind: 'sysctl'; readonly path: string; readonly before: string }
  | { readonly kind: 'cgroup'; readonly path: string }
  | { readonly kind: 'container'; readonly id: string; readonly runcRoot: string }
  | { readonly kind: 'process'; readonly pid: number; readonly startTicks: string };

/** A resource with what it belongs to: a pod's UID, or `node`. */
export interface JournalEntry {
  readonly owner: string;
  readonly resource: Resource;
}

/** Owner of what all VMs of a node share. */
export const NODE_OWNER = 'node';
