import type { SharedVmiStore } from '@virtwire/handler';
import type { VmIdentity } from '../emulate/api.ts';
import type { PodDirs } from './node-dirs.ts';

/** The node's directories as a handler sees them. */
export interface HandlerDirs {
  readonly podsDir: string;
  readonly shareDir: string;
  readonly privateDir: string;
  /** Holds the root of each pod's file system, by the pod's UID. */
  readonly podRoots: string;
}

/** What a handler under test is started with. */
export interface HandlerStart {
  readonly nodeName: string;
  readonly dirs: HandlerDirs;
  readonly store: SharedVmiStore;
  /** Period at which the handler asks every launcher again. */
  readonly resyncMs: number;
  /** Takes the handler's log lines. */
  readonly log: (line: string) => void;
  /** Told of every Kubernetes event, beside {@link RunningHandler.events}. */
  readonly onEvent?: (event: ReportedEvent) => void;
}

/** A Kubernetes event that a handler recorded. */
export interface ReportedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

/** A handler under test that runs. Stopping it never touches a VM. */
export interface RunningHandler {
  readonly events: readonly ReportedEvent[];
  /** Parts that this build says it does not have: `hotplug`, `migrationProxies`. Default none. */
  readonly missingParts?: readonly string[];
  stop(): Promise<void>;
}

/** Starts the handler under test; it serves when this resolves. */
export type StartHandler = (start: HandlerStart) => Promise<RunningHandler>;

/** What a launcher under test is started with. */
export interface LauncherStart {
  readonly vm: VmIdentity;
  readonly pod: PodDirs;
  /** An empty directory for what else the launcher needs. */
  readonly scratchDir: string;
  /** Socket of the libvirt daemon. */
  readonly libvirtSocket: string;
  /** Flags of virt-launcher beside those that every launcher of the matrix gets. Default none. */
  readonly flags?: readonly string[];
  readonly log: (line: string) => void;
}

/** A launcher under test that is ready. */
export interface RunningLauncher {
  /** Where the launcher looks for QEMU's process id. */
  readonly qemuPidFile: string;
  readonly hasEnded: boolean;
  /** As SIGTERM to the pod. */
  terminate(): void;
  /** As SIGKILL. */
  kill(): Promise<void>;
}

/** Starts the launcher under test; it is ready when this resolves. */
export type StartLauncher = (start: LauncherStart) => Promise<RunningLauncher>;
