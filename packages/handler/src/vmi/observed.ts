import type { ClusterConfig } from '../cluster-config.ts';
import type { Domain, Vmi } from '../model.ts';
import type { LauncherState } from './launcher-state.ts';
import type { SyncOptions } from './steps.ts';

/** What is known of a domain. Not knowing is not the same as gone. */
export type DomainFact =
  /** Its launcher says that there is none, or was never started. `uid` may still be known from what was there. */
  | { readonly state: 'absent'; readonly uid: string }
  | { readonly state: 'present'; readonly domain: Domain }
  /** Its launcher is there and has not answered yet, or not any more. */
  | { readonly state: 'unknown'; readonly uid: string };

/** Facts of the cluster that go to the launcher with every sync. */
export interface ClusterFacts {
  readonly config: ClusterConfig;
  readonly topology: SyncOptions['topology'];
  /** All Plugin objects; empty when there are none. */
  readonly plugins: readonly object[];
}

/** Everything that decides one pass over a VMI. */
export interface Observed {
  readonly key: string;
  readonly nowMs: number;
  readonly nodeName: string;
  /** The VMI as stored; undefined when it is in no store. */
  readonly vmi: Vmi | undefined;
  readonly isExpectationOpen: boolean;
  readonly domain: DomainFact;
  /** UID that a ghost record has for the key; empty without one. */
  readonly recordedUid: string;
  /** The launcher of the VMI (or of what is left of it). */
  readonly launcher: LauncherState;
  /** The launcher of the domain's UID, when that is not the VMI's; else undefined. */
  readonly strangerLauncher: LauncherState | undefined;
  readonly cluster: ClusterFacts;
}
