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
export type { Fact } from './emulate/facts/fact.ts';
export type {
  DomainKeyChanges,
  HandlerFacts,
  LauncherFacts,
  LineFacts,
  RpcTimeouts,
  SharedFacts,
} from './emulate/facts/line-facts.ts';
export { startEmulatedHandler } from './emulate/handler/handler.ts';
export { factsOf } from './emulate/lines/lines.ts';
export { startEmulatedLauncher } from './emulate/launcher/launcher.ts';
export type { Sender } from './connection/frames.ts';
export type { CompatProcess } from './cli/process.ts';
export { compatProcess } from './cli/process.ts';
export { runCompat } from './cli/program.ts';
export type { CompatErrorCode } from './errors.ts';
export { CompatError } from './errors.ts';
export type { ReleaseLine } from './release-line.ts';
export { RELEASE_LINES } from './release-line.ts';
export type { Emulations } from './matrix/emulations.ts';
export { commandHandler } from './matrix/command-handler.ts';
export { commandLauncher } from './matrix/command-launcher.ts';
export type { CompatSubjects, TestRunner } from './matrix/define-suite.ts';
export { defineCompatSuite } from './matrix/define-suite.ts';
export type { MatrixDeps, MatrixOptions } from './matrix/run-matrix.ts';
export { runMatrix } from './matrix/run-matrix.ts';
export { startOurHandler } from './matrix/our-handler.ts';
export { startOurLauncher } from './matrix/our-launcher.ts';
export type {
  HandlerDirs,
  HandlerStart,
  LauncherStart,
  ReportedEvent,
  RunningHandler,
  RunningLauncher,
  StartHandler,
  StartLauncher,
} from './matrix/subjects.ts';
export type { Counts } from './report/counts.ts';
export { countCells, renderCounts } from './report/counts.ts';
export type { ScenarioName } from './report/html.ts';
export { renderHtml } from './report/html.ts';
export type { RunFacts } from './report/json.ts';
export { renderJsonReport } from './report/json.ts';
export { renderJunit } from './report/junit.ts';
export type { Scenario } from './scenarios/scenarios.ts';
export { SCENARIOS } from './scenarios/scenarios.ts';
export type { Finding } from './probe/findings.ts';
export type { ProbeOptions, ProbeResult } from './probe/probe.ts';
export { probeLauncher, probeNotifyServer } from './probe/probe.ts';
export type { RecordOptions, Recorder } from './record/record.ts';
export { startRecorder } from './record/record.ts';
export type { Capture, RecordedMessage } from './replay/captures.ts';
export type { Flaw, RecordedConnection, RecordedFrames, Recordings, SampleDocument } from './replay/recordings.ts';
export { readRecordings } from './replay/recordings.ts';
export type { ReplayProblem, ReplayResult } from './replay/replay.ts';
export { replay } from './replay/replay.ts';
export type { SchemaBreak } from './schema/compare.ts';
export { compareSchemas } from './schema/compare.ts';
export { schemaOfRelease } from './schema/from-history.ts';
export type { Schema, SchemaField, SchemaMessage, SchemaRpc } from './schema/model.ts';
export { readSchema } from './schema/read-protos.ts';
export type { SchemaRule } from './schema/semantics.ts';
