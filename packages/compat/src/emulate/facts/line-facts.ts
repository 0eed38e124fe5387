import type { ReleaseLine } from '../../release-line.ts';
import type { Fact } from './fact.ts';

/** Deadlines of a handler in seconds: by RPC, with the groups of `releases.json`. */
export interface RpcTimeouts {
  readonly vmiRequests: number;
  readonly queries: number;
  /** RPCs with a deadline of their own. */
  readonly byRpc: Readonly<Record<string, number>>;
}

/** How the domain JSON of a line differs from that of the line before it. */
export interface DomainKeyChanges {
  /** `Type.Key` of keys that are new. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** What is true of the processes of a line, whichever side they are. */
export interface SharedFacts {
  /** What a client writes into `:authority`. */
  readonly authority: Fact<'socketPath' | 'localhost'>;
  readonly userAgent: Fact<string>;
  readonly domainKeys: Fact<DomainKeyChanges>;
  readonly acpiTable: Fact<'none' | 'object' | 'array'>;
  /** Whether an unset creationTimestamp is printed as null. */
  readonly printsNullCreationTimestamp: Fact<boolean>;
  readonly protocolVersions: Fact<readonly number[]>;
}

/** What is true of a line's launcher. */
export interface LauncherFacts {
  readonly cmdRpcCount: Fact<number>;
  readonly cmdSocket: Fact<{ readonly initName: string; readonly name: string }>;
  /** Names of the notify socket in the pod's share directory, in the order in which they are tried. */
  readonly notifySockets: Fact<readonly string[]>;
  readonly notifyRetry: Fact<{ readonly everyMs: number; readonly totalMs: number; readonly callMs: number }>;
  /** Interfaces of a domain that was only defined, with the placeholders for hotplug: they have no alias. */
  readonly interfacesAtDefine: Fact<number>;
  readonly crashesWithoutVmi: Fact<boolean>;
  readonly crashesWithoutFinalizeOptions: Fact<boolean>;
  readonly crashesOnNullMigrationOptions: Fact<boolean>;
  readonly crashesOnExecTimeoutZero: Fact<boolean>;
  readonly crashesWithoutMaxGuest: Fact<boolean>;
  readonly needsDisksInfo: Fact<boolean>;
  readonly expandDisksSwitch: Fact<'options' | 'optionsOrClusterConfig' | 'always'>;
  readonly readsInterfaceAttachment: Fact<boolean>;
  readonly printsMigrationCompleted: Fact<boolean>;
  readonly reportsTargetEnd: Fact<boolean>;
  /** Whether the target has migration metadata from its preparation on. */
  readonly targetMetadataFromPreparation: Fact<boolean>;
  readonly refusesMigrationAlreadyOver: Fact<'source' | 'sourceAndTarget'>;
  readonly migrateNotReadyText: Fact<string>;
  readonly cancelWithoutMigration: Fact<'success' | 'failure'>;
  readonly workloadDisruption: Fact<'allowPostCopy' | 'allowWorkloadDisruption'>;
  /** GetDomainStats without a domain. */
  readonly statsWithoutDomain: Fact<'empty' | 'null' | 'failure'>;
  /** Keys of the stats document that exist in this line and not in every line. */
  readonly statsKeys: Fact<readonly string[]>;
  readonly filesystemsHaveDisks: Fact<boolean>;
  /** GuestPing of a domain that does not exist. */
  readonly guestPingWithoutDomain: Fact<'success' | 'error'>;
  readonly reconnectEvent: Fact<'ERROR' | 'MODIFIED'>;
  /** Whether the end of an incoming migration sends one more MODIFIED event after ADDED. */
  readonly extraEventAfterMigration: Fact<boolean>;
  readonly k8sEvents: Fact<readonly string[]>;
}

/** What is true of a line's handler. */
export interface HandlerFacts {
  readonly timeouts: Fact<RpcTimeouts>;
  readonly unimplemented: Fact<'genericError' | 'passedThrough'>;
  readonly socketLookup: Fact<'podsAndLegacy' | 'pods' | 'podsOfNode'>;
  readonly domainList: Fact<'socketsAndRecords' | 'records'>;
  readonly unreachableInList: Fact<'dropped' | 'unknown'>;
  readonly sendsDisksInfo: Fact<boolean>;
  readonly expandDisksFlags: Fact<'options' | 'optionsAndClusterConfig' | 'none'>;
  readonly sendsInterfaceAttachment: Fact<boolean>;
  readonly finalizeOptions: Fact<'empty' | 'interfaceMigration'>;
  readonly clusterConfig: Fact<Readonly<Record<string, boolean>> | undefined>;
  readonly migrationOptionKeys: Fact<readonly string[]>;
  /** What ends a migration for the source handler. */
  readonly migrationEnd: Fact<'completedKey' | 'endTimestamp'>;
  readonly callsAgainAfterDelete: Fact<boolean>;
  readonly crashesOnNullAlias: Fact<boolean>;
  readonly watchesNotifySocket: Fact<boolean>;
  /** Paths of fields of a VMI that the release does not know: they are gone from what it sends and writes. */
  readonly unknownVmiFields: Fact<readonly string[]>;
  /** Whether the REST route of a hard reset exists. */
  readonly hasResetRoute: Fact<boolean>;
}

/** A release line as data: all that its emulations do differently from the others'. */
export interface LineFacts {
  readonly line: ReleaseLine;
  /** The tag whose schema and behaviour is emulated: the last patch release of the line. */
  readonly release: Fact<string>;
  readonly shared: SharedFacts;
  readonly launcher: LauncherFacts;
  readonly handler: HandlerFacts;
}
