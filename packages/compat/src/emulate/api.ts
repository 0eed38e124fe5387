import type { ReleaseLine } from '../release-line.ts';

/** The VM that a launcher was started for, as its command line says. */
export interface VmIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A call that an emulated peer served or made. */
export interface RecordedCall {
  readonly seq: number;
  readonly atMs: number;
  readonly channel: 'cmd' | 'notify';
  /** Name of the RPC as on the wire: `SyncVirtualMachine`, `Info`, `HandleK8sEvent`. */
  readonly rpc: string;
  readonly authority: string;
  /** The request by the emulated release's schema, bytes fields with JSON decoded; `{}` if it could not be decoded. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly requestBytes: Uint8Array;
  /** Numbers of fields that the release does not know, by message path: `options.7`. They were dropped. */
  readonly droppedFields: readonly string[];
  readonly timeoutMs: number | undefined;
  /** gRPC status; 0 when there is a response. */
  readonly code: number;
  readonly details: string;
  readonly response: Readonly<Record<string, unknown>> | undefined;
}

/** How quick and how willing the emulated guest is. All times in milliseconds. */
export interface LifeCycle {
  /** From `Paused/StartingUp` to `Running`. Default 10. */
  readonly startMs?: number;
  /** From the power button to `Shutoff/Shutdown`; `never` for a guest that ignores it. Default 20. */
  readonly shutdownMs?: number | 'never';
  /** From Running to a connected guest agent; `never` for a guest without one. Default `never`. */
  readonly agentMs?: number | 'never';
  /** From MigrateVirtualMachine to the end of the migration. Default 30. */
  readonly migrationMs?: number;
  /** From the last event to the end of the process. Default 100. */
  readonly exitMs?: number;
}

/** What goes wrong on purpose. */
export interface LauncherFaults {
  /** RPCs that it lacks beside those that its release lacks: they answer UNIMPLEMENTED. */
  readonly lack?: readonly string[];
  /** RPCs that are taken and never answered. */
  readonly hang?: readonly string[];
  /** RPCs that answer success=false with this text (a gRPC error where the release does so). */
  readonly fail?: Readonly<Record<string, string>>;
  /** The outgoing migration fails with this reason. */
  readonly failMigration?: string;
}

/** Options of an emulated launcher. */
export interface EmulatedLauncherOptions {
  readonly line: ReleaseLine;
  /** Which release of the line. Default the last patch. */
  readonly patch?: 'first' | 'last';
  readonly vmi: VmIdentity;
  /** The directory of the cmd socket: `<pods>/<pod uid>/volumes/kubernetes.io~empty-dir/sockets`. Made if missing. */
  readonly socketsDir: string;
  /** The pod's `/var/run/kubevirt`, where the notify pipe appears: `<shareDir>/domain-notify-pipe.sock`. */
  readonly shareDir: string;
  readonly podName?: string;
  /** Whether the launcher has the flag that lets GetVMStats answer. Default false, as in a cluster by default. */
  readonly collectsStats?: boolean;
  readonly lifeCycle?: LifeCycle;
  readonly faults?: LauncherFaults;
  /** Changes what goes over the wire, to prove that a suite notices. Used by mutants only. */
  readonly tamper?: LauncherTamper;
}

/** Hooks into what an emulated launcher sends. */
export interface LauncherTamper {
  readonly domain?: (domainJson: string) => string;
  readonly response?: (rpc: string, bytes: Uint8Array) => Uint8Array;
}

/** What a launcher's domain is at the moment; undefined fields before the first sync. */
export interface LauncherState {
  /** Whether the process lives; a crash ends it, with the socket left behind as a file that refuses connections. */
  readonly process: 'running' | 'stopped' | 'crashed';
  readonly crashReason: string | undefined;
  readonly domain: { readonly status: string; readonly reason: string } | undefined;
  readonly isAgentConnected: boolean;
  readonly isFrozen: boolean;
  /** Devices by alias name, in order: what hotplug has to change. */
  readonly disks: readonly string[];
  readonly interfaces: readonly string[];
  readonly hostDevices: readonly string[];
  readonly vcpus: number;
  readonly memoryKiB: number;
  /** Whether disks grow online, by the switch that the release looks at. */
  readonly expandsDisks: boolean;
  readonly migration:
    | {
        readonly role: 'source' | 'target';
        readonly uid: string;
        readonly hasEnded: boolean;
        readonly hasFailed: boolean;
        readonly isFinalized: boolean;
        /** Whether a migration that stalls may stop or post-copy the guest, as the release reads its options. */
        readonly allowsDisruption: boolean;
      }
    | undefined;
}

/** What became of one notify event. */
export interface SentEvent {
  readonly seq: number;
  readonly kind: 'domain' | 'k8s';
  /** `ADDED`, `MODIFIED`, `ERROR`, or the reason of a Kubernetes event. */
  readonly type: string;
  /** `Running/Unknown` for domain events. */
  readonly status: string;
  readonly attempts: number;
  readonly outcome: 'sent' | 'refused' | 'lost' | 'pending';
  readonly error: string | undefined;
}

/** A launcher of one release line with a small VM behind it. Disposing of it ends the process as SIGKILL does. */
export interface EmulatedLauncher extends AsyncDisposable {
  readonly line: ReleaseLine;
  readonly release: string;
  readonly cmdSocket: string;
  readonly calls: readonly RecordedCall[];
  readonly events: readonly SentEvent[];
  readonly state: LauncherState;
  /** The domain JSON that GetDomain would answer now; empty without a domain. */
  domainJson(): string;
  /** Waits for a condition, checked after every call, event and change of state. @throws {CompatError} `WaitTimeout`. */
  waitFor(what: string, condition: (launcher: EmulatedLauncher) => boolean, timeoutMs?: number): Promise<void>;

  connectAgent(): void;
  disconnectAgent(): void;
  /** The guest turns itself off. */
  powerOffGuest(): void;
  /** QEMU dies. */
  crashGuest(): void;
  /** The guest panics: Crashed/Panicked. */
  panicGuest(): void;
  /** A disk fails: Paused/IOError, and the Kubernetes event IOerror. */
  failDisk(): void;
  /** libvirt was away and is back: ERROR event up to v1.8, MODIFIED from v1.9. */
  reconnectLibvirt(): void;
  /** Breaks the way of its events to the handler, or mends it. */
  cutNotify(isCut: boolean): void;
  /** An incoming migration arrives at this launcher as a target: the domain runs here. */
  receiveMigration(): void;
  /** The process stops answering, while its socket still accepts connections. */
  hang(): void;
  unhang(): void;
  /** The process dies; the socket file stays and refuses connections. */
  crashProcess(reason: string): void;
  /** SIGTERM: marks the graceful shutdown, as the end of a pod does; the process ends once the domain is gone. */
  terminate(): void;
}

/** Options of an emulated handler. */
export interface EmulatedHandlerOptions {
  readonly line: ReleaseLine;
  /** Which release of the line. Default the last patch. */
  readonly patch?: 'first' | 'last';
  readonly nodeName?: string;
  /** The node's mount of the kubelet's pods directory. */
  readonly podsDir: string;
  /** The node's `/var/run/kubevirt`: `domain-notify.sock` and the ghost records are here. */
  readonly shareDir: string;
  /** Where the launcher of a pod sees its `/var/run/kubevirt` (through `/proc/<pid>/root` on a real node). */
  readonly podShareDir: (podUid: string) => string;
  /** Default: what releases of the line wait, `releases.json` rpcTimeoutsSeconds. Factor for quick tests. */
  readonly timeoutFactor?: number;
  /** Whether the cluster grows disks online (a feature gate up to v1.8). Default false. */
  readonly expandDisks?: boolean;
  readonly tamper?: HandlerTamper;
}

/** Hooks into what an emulated handler sends. */
export interface HandlerTamper {
  readonly request?: (rpc: string, bytes: Uint8Array) => Uint8Array;
}

/** What a handler does for a VMI; order and content of the calls are those of the release line. */
export type HandlerAction =
  /** Wait for the socket, ghost record, connect, pipe, first sync, and the syncs that follow Running. */
  | 'start'
  /** One reconcile of a running VMI: sync, and guest info when the agent is connected. */
  | 'update'
  | 'pause'
  | 'unpause'
  | 'freeze'
  | 'unfreeze'
  | 'softReboot'
  | 'reset'
  /** The REST queries of the guest agent: info, users, filesystems. */
  | 'guestQueries'
  | 'metrics'
  /** Statistics behind the launcher's flag: all items, then those of libvirt alone. */
  | 'vmStats'
  | 'memoryDump'
  | 'hotplugHostDevices'
  /** Deletion with grace: ping and shutdown, repeated, until the domain is off; then delete. */
  | 'stop'
  /** Grace period over: ping and kill, then delete. */
  | 'kill'
  | 'migrate'
  | 'cancelMigration'
  | 'prepareMigrationTarget'
  /** The migration has ended on the target: finalize, CPUs, memory. */
  | 'finalizeMigration'
  | 'cleanUpMigrationTarget'
  /** Listing of domains as at handler start and at each resync: own connection, Info, GetDomain. */
  | 'resync';

/** How one call of an action ended, by the rules of the handler's client. */
export interface CallOutcome {
  readonly rpc: string;
  readonly ok: boolean;
  readonly code: number;
  /** The handler's words for the failure, as they end up in conditions and events. */
  readonly error: string | undefined;
  readonly response: Readonly<Record<string, unknown>> | undefined;
}

/** What an action did. */
export interface ActionOutcome {
  readonly action: HandlerAction;
  readonly ok: boolean;
  readonly calls: readonly CallOutcome[];
  readonly error: string | undefined;
}

/** A domain event as an emulated handler took it. */
export interface ReceivedEvent {
  readonly seq: number;
  readonly kind: 'domain' | 'k8s';
  readonly type: string;
  readonly accepted: boolean;
  /** The reason of a refusal, or of the crash that it caused. */
  readonly error: string | undefined;
  readonly domain: Readonly<Record<string, unknown>> | undefined;
}

/** A handler of one release line. Disposing of it is SIGTERM: launchers and their VMs stay. */
export interface EmulatedHandler extends AsyncDisposable {
  readonly line: ReleaseLine;
  readonly release: string;
  readonly notifySocket: string;
  readonly calls: readonly RecordedCall[];
  readonly events: readonly ReceivedEvent[];
  readonly state: { readonly process: 'running' | 'stopped' | 'crashed'; readonly crashReason: string | undefined };
  /** The last domain known for a VMI, as this release decoded it. */
  domain(vmi: VmIdentity): Readonly<Record<string, unknown>> | undefined;
  /** Whether this release takes the migration of a VMI for over, by what its launcher last told. */
  hasMigrationEnded(vmi: VmIdentity): boolean;
  /** Runs an action for a VMI. `vmi` is the whole object; `podUid` says which launcher. Never rejects for a peer's failure. */
  run(action: HandlerAction, vmi: Readonly<Record<string, unknown>>, podUid: string): Promise<ActionOutcome>;
  /** Waits for a condition, checked after every call and event. @throws {CompatError} `WaitTimeout`. */
  waitFor(what: string, condition: (handler: EmulatedHandler) => boolean, timeoutMs?: number): Promise<void>;
  /**
   * Ends the notify server but keeps the process, as when its socket is replaced. Releases that watch their socket
   * make a new server after five seconds.
   */
  loseNotify(): Promise<void>;
  restoreNotify(): Promise<void>;
}
