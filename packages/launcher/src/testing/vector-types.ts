/** One scripted answer of libvirt, the agent or the notify server. */
export interface ScriptedAnswer {
  readonly error?: {
    readonly code?: number;
    readonly domain?: number;
    readonly message?: string;
    readonly text?: string;
  };
  readonly result?: unknown;
  readonly xml?: string;
  readonly state?: readonly [number, number];
  readonly delayMs?: number;
  /** Answer of QEMU's monitor. */
  readonly reply?: string;
  readonly transport?: boolean;
  readonly success?: boolean;
  readonly message?: string;
}

/** The libvirt domain of a case. */
export interface ScriptedDomain {
  readonly state: number;
  readonly reason: number;
  readonly xml?: string;
  readonly inactiveXml?: string;
  readonly migratableXml?: string;
  readonly uuid?: string;
  /** Default: that of the VMI. */
  readonly name?: string;
}

/** A reply of the guest agent. */
export interface AgentReply {
  readonly reply?: string;
  readonly error?: ScriptedAnswer['error'];
}

/** What a step or a case may set. */
export interface ScriptChanges {
  readonly domain?: ScriptedDomain | null;
  readonly answers?: Readonly<Record<string, readonly ScriptedAnswer[]>>;
  readonly agent?: Readonly<Record<string, readonly AgentReply[]>>;
  readonly guestInfo?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Options of a request, as protobuf JSON. */
export interface VectorOptions {
  readonly interfaceDomainAttachment?: Readonly<Record<string, string>>;
  readonly interfaceMigration?: Readonly<Record<string, { readonly Method: string }>>;
  readonly pluginsJson?: string;
  readonly topology?: { readonly numaCells: never };
}

/** One step of a case. */
export interface VectorStep extends ScriptChanges {
  readonly rpc?: string;
  readonly request?: Readonly<Record<string, unknown>>;
  readonly rawVmi?: string;
  readonly vmi?: unknown;
  readonly options?: VectorOptions;
  readonly event?: string;
  readonly id?: number;
  readonly detail?: number;
  readonly state?: number;
  readonly reason?: number;
  readonly job?: Readonly<Record<string, unknown>>;
  readonly domainName?: string;
  readonly do?: string;
  readonly ms?: number;
}

/** Something that happens at a time, counted from the start of the case. */
export interface TimelineEntry {
  readonly atMs: number;
  /** Numbers of the job, by the names of typed parameters, with its type. */
  readonly job?: Readonly<Record<string, unknown>>;
  readonly state?: readonly [number, number];
  readonly iteration?: number;
  /** That many ends of passes in a burst. */
  readonly iterations?: number;
  /** Alias of the device. */
  readonly deviceRemoved?: string;
  /** The migrate call returns. */
  readonly finish?: { readonly error?: ScriptedAnswer['error'] };
}

/** `input.json` of a launcher case, as far as this families use it. */
export interface VectorInput extends ScriptChanges {
  readonly title: string;
  readonly vmi: { readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string } };
  readonly config?: {
    readonly notifier?: boolean;
    readonly runAsNonroot?: boolean;
    readonly vmStatsCollector?: boolean;
    readonly libvirtHookServerAndClient?: boolean;
    readonly ovmfPath?: string;
    /** Seconds for sys, file, user, version, fsfreeze. */
    readonly agentIntervals?: readonly [number, number, number, number, number];
    readonly notifyDownUntilMs?: number;
  };
  readonly options?: VectorOptions;
  readonly pausedByRequest?: readonly string[];
  readonly timeline?: readonly TimelineEntry[];
  readonly files?: Readonly<Record<string, { readonly content?: string }>>;
  readonly domainStats?: Readonly<Record<string, unknown>> | null;
  readonly memoryStats?: Readonly<Record<string, number | bigint>>;
  readonly vcpuPinInfo?: readonly (readonly boolean[])[];
  readonly steps: readonly VectorStep[];
}

/** One line of a trace. */
export type TraceEntry = Readonly<Record<string, unknown>> & { readonly at?: number };

/** `output.json` of a launcher case. */
export interface VectorOutput {
  readonly after: {
    readonly metadata: Readonly<Record<string, unknown>>;
    readonly main?: readonly string[];
    /** Files that were made or changed. */
    readonly files?: Readonly<
      Record<string, { readonly mode?: string; readonly content?: string; readonly link?: string }>
    >;
    readonly filesRemoved?: readonly string[];
    readonly deviceAliases?: Readonly<Record<string, string>>;
    readonly pausedByRequest?: readonly string[] | null;
    readonly domain?: { readonly state: number; readonly reason: number } | null;
  };
  readonly steps: readonly {
    readonly trace: readonly TraceEntry[] | null;
    readonly rpc?: string;
    readonly response?: Readonly<Record<string, unknown>>;
    readonly grpcError?: string;
    readonly panic?: string;
  }[];
}
