export { HandlerError, HANDLER_ERROR_CODES } from './errors.ts';
export type { HandlerErrorCode } from './errors.ts';
export { DEFAULT_HANDLER_CONFIG } from './config.ts';
export type { HandlerConfig } from './config.ts';
export { clusterConfig } from './cluster-config.ts';
export type { BindingPlugin, ClusterConfig, KubeVirtConfiguration, KubeVirtObject, SmBios } from './cluster-config.ts';
export { HANDLER_FLAGS, handlerConfig } from './flags.ts';
export type { HandlerFlagValues } from './flags.ts';
export { syncOptions } from './vmi/sync-options.ts';
export { createHandler } from './handler.ts';
export type { Handler, HandlerDeps } from './handler.ts';
export { parseTopology } from './topology/topology.ts';
export { createStoreSource } from './vmi-source/store-source.ts';
export type { SharedVmiStore, StoreSourceDeps } from './vmi-source/store-source.ts';
export type { VmiKey, VmiSource, VmiSourceEvent } from './vmi-source/source.ts';
export type { EventRecorder, EventType } from './events/recorder.ts';
export type { ObjectRef } from './model.ts';
export type {
  ContainerDiskPart,
  DevicePart,
  HotplugPart,
  Isolation,
  NetworkPart,
  NodeParts,
  OptionalParts,
  PodInterface,
} from './prepare/parts.ts';
export { calculatePhase } from './vmi/phase.ts';
export type { PhaseFacts, PhaseResult } from './vmi/phase.ts';
export type { LauncherState } from './vmi/launcher-state.ts';
export { decideVmi } from './vmi/decide.ts';
export type { ClusterFacts, DomainFact, Observed } from './vmi/observed.ts';
export type { HookPoint, Note, Plan, Step, SyncOptions } from './vmi/steps.ts';
export { computeStatus } from './status/compute.ts';
export type { StatusResult } from './status/compute.ts';
export type { NodeFacts, StatusEvent, StatusInput } from './status/facts.ts';
export type { GuestAgentInfo } from './status/guest-agent.ts';
