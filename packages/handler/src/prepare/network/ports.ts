import type { Logger } from '@virtwire/telemetry';
import type { Isolation } from '../parts.ts';
import type { Advertiser } from './advertise.ts';
import type { RouterFacts } from './router-advertisement.ts';
import type { NetworkOp } from './plan.ts';
import type { PodNetwork } from './state.ts';

/** Files of a set-up: those of the node agent (`node`), and those in the launcher's pod (`pod`). */
export interface NetworkFiles {
  /** Reads a file; undefined when there is none. `path` is relative to the directory of the kind. */
  read(path: string): string | undefined;
  /** Writes a file whole or not at all, mode 0604, owner qemu; missing directories are made. */
  write(path: string, text: string): void;
  /** Removes a file or directory tree; one that is missing is no error. */
  remove(path: string): void;
}

/** The kernel's side of one pod: its network namespace. */
export interface PodKernel extends Disposable {
  /** Names this very pod among all that the node has had since it started. */
  readonly identity: string;
  read(): PodNetwork;
  apply(op: NetworkOp): Promise<void>;
  /** Runs a script of nft commands as one transaction. */
  runNft(script: string): Promise<void>;
  /** True if the table `nat` of a family has the marker chain. */
  hasRules(family: 'ip' | 'ip6'): Promise<boolean>;
}

/** A pod's network namespace as the gateway of its guests sees it. */
export interface RouterKernel extends Disposable {
  read(): PodNetwork;
  /** Tells the guest on a bridge of its IPv6 gateway, also after this object is disposed of. */
  advertiseRouter(bridge: string, facts: Omit<RouterFacts, 'lifetimeSeconds'>, log: Logger): Advertiser;
}

/** The outside world of network phase 1. */
export interface NetworkPorts {
  /** `<private dir>/network-info-cache`. */
  readonly nodeFiles: NetworkFiles;
  /** `/var/run/kubevirt-private` in the launcher's root. */
  podFiles(launcher: Isolation): NetworkFiles;
  openKernel(launcher: Isolation): PodKernel;
}
