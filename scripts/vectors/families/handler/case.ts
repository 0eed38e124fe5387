import type { KubeVirtObject, PodInterface } from '@virtwire/handler';
import type { FakeAnswer } from '@virtwire/handler/testing';
import type { CmdRpc } from '@virtwire/shared-proto';
import type { Vmi } from '@virtwire/vm-model';

/** A pod of the VMI as a case describes it. */
export interface CasePod {
  readonly uid: string;
  readonly dir?: boolean;
  readonly socket?: 'serving' | 'dead' | 'none';
  readonly unresponsiveMarker?: boolean;
}

/** Circumstances of one pass; see the README of the folder. */
export interface CaseInput {
  readonly title: string;
  readonly families: readonly string[];
  readonly node: string;
  readonly now: string;
  readonly key?: string;
  readonly vmi?: Vmi | null;
  readonly vmiStore?: 'global';
  readonly domain?: object | null;
  readonly launcher?: {
    readonly pods?: readonly CasePod[];
    readonly connected?: boolean;
    readonly connectedUID?: string;
    readonly firstSeen?: string;
  };
  readonly rpc?: Partial<Record<CmdRpc | 'Info', FakeAnswer & { readonly versions?: readonly number[] }>>;
  readonly ghostRecords?: readonly {
    readonly name: string;
    readonly namespace: string;
    readonly socketFile: string;
    readonly uid: string;
  }[];
  readonly kubevirt?: KubeVirtObject;
  readonly hostCpuModel?: string;
  readonly capabilitiesXml?: string;
  isolationError?: string;
  readonly rootFiles?: readonly { readonly path: string; readonly size?: number; readonly dir?: boolean }[];
  readonly containerDisks?: {
    readonly notReady?: boolean;
    readonly readyError?: string;
    readonly mountError?: string;
    readonly unmountError?: string;
  };
  readonly hotplug?: {
    readonly mountError?: string;
    readonly mountErrorKind?: 'waiting' | 'notExist';
    readonly unmountError?: string;
    readonly unmountAllError?: string;
    readonly mounted?: readonly string[];
    readonly isMountedError?: string;
  };
  readonly network?: {
    readonly setupError?: string;
    readonly critical?: boolean;
    readonly teardownError?: string;
    readonly podInterfaces?: Readonly<Record<string, Partial<PodInterface>>>;
  };
  readonly cgroupError?: string;
  readonly downwardMetricsError?: string;
  readonly memlockError?: string;
  readonly housekeepingError?: string;
  readonly ownershipErrors?: Readonly<Record<string, string>>;
  readonly nodeHookErrors?: Readonly<Record<string, string>>;
  readonly plugins?: readonly object[];
  readonly selinux?: {
    readonly present?: boolean;
    readonly context?: string;
    readonly contextError?: string;
    readonly error?: string;
  };
  readonly update?: { readonly error?: string };
  readonly expectationOpen?: boolean;
  readonly steps?: readonly Partial<CaseInput>[];
}

/** One thing that was done in a pass. */
export type TraceEntry = { readonly kind: string } & Readonly<Record<string, unknown>>;

/** A file below the launcher's root that a pass has made or changed. */
export interface CaseFile {
  readonly path: string;
  readonly mode: string;
  readonly new: boolean;
  readonly size: number;
}

/** State after a pass. */
export interface CaseAfter {
  readonly domainInStore: boolean;
  readonly expectationOpen: boolean;
  readonly ghostRecords: readonly Readonly<Record<string, string>>[];
  readonly filesInLauncherRoot?: readonly CaseFile[];
  readonly launcherClients: Readonly<
    Record<
      string,
      { readonly connected: boolean; readonly ready: boolean; readonly notInitializedSince: string } | null
    >
  >;
}

/** Expected outcome of one pass. */
export interface CasePass {
  readonly error: string | null;
  readonly trace: readonly TraceEntry[];
  readonly update?: Vmi;
  readonly after: CaseAfter;
}
