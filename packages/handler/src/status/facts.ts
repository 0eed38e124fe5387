import type { ClusterConfig } from '../cluster-config.ts';
import type { Domain, Vmi } from '../model.ts';
import type { EventType } from '../events/recorder.ts';
import type { PodInterface } from '../prepare/parts.ts';
import type { LauncherState } from '../vmi/launcher-state.ts';
import type { GuestAgentInfo } from './guest-agent.ts';

/** Facts that only the node or the guest can tell; gathered before the status is computed. */
export interface NodeFacts {
  /** Context of the launcher's root, `none` without SELinux; undefined when it could not be read. */
  readonly selinuxContext: string | undefined;
  /** Sizes of the ISOs that the launcher made, in bytes, by volume name. */
  readonly isoSizes: ReadonlyMap<string, number>;
  /** Names of hot-plugged volumes that are mounted in the pod. */
  readonly mountedVolumes: ReadonlySet<string>;
  /** Pod-side addresses by interface name. */
  readonly podInterfaces: ReadonlyMap<string, PodInterface>;
  /** The agent's answer; undefined when it was not asked. */
  readonly guestAgent: GuestAgentInfo | undefined;
  /** Name of the CPU that host-model stands for; empty when it is not known. */
  readonly hostCpuModel: string;
  /** Architecture of the node in KubeVirt's names: `amd64`, `arm64`, `s390x`. */
  readonly hostArchitecture: string;
}

/** Everything that decides the next status of a VMI. */
export interface StatusInput {
  readonly vmi: Vmi;
  /** Undefined when the domain is known to be absent. */
  readonly domain: Domain | undefined;
  readonly launcher: LauncherState;
  readonly nowMs: number;
  readonly nodeName: string;
  readonly syncError: unknown;
  readonly facts: NodeFacts;
  readonly config: ClusterConfig;
}

/** An event that a change of status brings along. */
export interface StatusEvent {
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}
