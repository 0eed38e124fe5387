export { HandlerError, HANDLER_ERROR_CODES } from './errors.ts';
export type { HandlerErrorCode } from './errors.ts';
export { DEFAULT_HANDLER_CONFIG } from './config.ts';
export type { HandlerConfig } from './config.ts';
export type { Handler, HandlerDeps } from './handler.ts';
export type { VmiKey, VmiSource, VmiSourceEvent } from './vmi-source/source.ts';
export type { EventRecorder, EventType } from './events/recorder.ts';
export type { Vmi, Domain, ObjectRef, Condition, VmiPhase } from './model.ts';
export { createNetworkPart } from './prepare/network/network-part.ts';
export type { NetworkPartDeps, NetworkPartOptions } from './prepare/network/network-part.ts';
export type { NetworkFiles, NetworkPorts, PodKernel } from './prepare/network/ports.ts';
export type { NetworkOp, NewTapDevice } from './prepare/network/plan.ts';
export type {
  DesiredNetwork,
  FamilyState,
  InterfaceState,
  LinuxStack,
  NetworkAddress,
  PodNetwork,
  RouteState,
} from './prepare/network/state.ts';
export type { BindingPluginType } from './prepare/network/binding.ts';
export { networksToStart, networksToUpdate } from './vmi/networks.ts';
export { calculatePhase } from './vmi/phase.ts';
export type { PhaseFacts, PhaseResult } from './vmi/phase.ts';
export type { LauncherState } from './vmi/launcher-state.ts';
