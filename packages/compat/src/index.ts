export type { Cell, CellResult, Pair, Party, ScenarioContext, SideUnderTest } from './cell.ts';
export type {
  ActionOutcome,
  CallOutcome,
  EmulatedHandler,
  EmulatedHandlerOptions,
  EmulatedLauncher,
  EmulatedLauncherOptions,
  HandlerAction,
  HandlerTamper,
  LauncherFaults,
  LauncherState,
  LauncherTamper,
  LifeCycle,
  ReceivedEvent,
  RecordedCall,
  SentEvent,
  VmIdentity,
} from './emulate/api.ts';
export { startEmulatedHandler } from './emulate/handler/handler.ts';
export { factsOf } from './emulate/lines/lines.ts';
export { startEmulatedLauncher } from './emulate/launcher/launcher.ts';
export type { CompatErrorCode } from './errors.ts';
export { CompatError } from './errors.ts';
export type { ReleaseLine } from './release-line.ts';
export { RELEASE_LINES } from './release-line.ts';
