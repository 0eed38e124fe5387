import type { cmdV1 } from '@virtwire/shared-proto';
import type { HandlerErrorCode } from '../errors.ts';
import type { Vmi } from '../model.ts';

/** Points at which node hooks run. */
export type HookPoint = 'PreVMStart' | 'PostVMStart' | 'PreVMStop' | 'PostVMStop';

/** Options of SyncVirtualMachine; what is left out is empty. */
export type SyncOptions = cmdV1.DeepPartial<cmdV1.VirtualMachineOptions>;

/**
 * One thing to do for a VMI. Steps run in order; a failing step ends the pass, but for `writeStatus`, which always runs
 * and is told about the failure.
 */
export type Step =
  | { readonly kind: 'dropExpectation' }
  /** Look again later; `isSafetyNet` marks a timer beside an event that should come first. */
  | { readonly kind: 'requeue'; readonly afterMs: number; readonly reason: string; readonly isSafetyNet?: boolean }
  | { readonly kind: 'requeueRateLimited'; readonly reason: string }
  /** Ends the pass without an error: something is not there yet. */
  | { readonly kind: 'stop'; readonly reason: string }
  | { readonly kind: 'fail'; readonly code: HandlerErrorCode; readonly message: string }
  /** Starts the clock of a launcher that has not come up. */
  | { readonly kind: 'trackLauncher' }
  | { readonly kind: 'finalCleanup'; readonly uid: string }
  | { readonly kind: 'runHook'; readonly point: HookPoint }
  | { readonly kind: 'pingLauncher' }
  | {
      readonly kind: 'signalShutdown';
      readonly isFirst: boolean;
      readonly requeueAfterMs: number;
    }
  | { readonly kind: 'killDomain'; readonly because: string }
  | { readonly kind: 'deleteDomain' }
  | { readonly kind: 'checkIoErrorRetry' }
  | { readonly kind: 'connectLauncher' }
  | { readonly kind: 'openCgroup' }
  | { readonly kind: 'awaitContainerDisks' }
  | { readonly kind: 'mountContainerDisks' }
  | { readonly kind: 'mountHotplugVolumes' }
  | { readonly kind: 'setUpNetwork'; readonly networks: readonly string[] }
  | { readonly kind: 'prepareDevices'; readonly vmi: Vmi }
  | { readonly kind: 'adjustMemlock' }
  | { readonly kind: 'plugSriov' }
  | { readonly kind: 'dumpMemory'; readonly path: string }
  | { readonly kind: 'startDownwardMetrics' }
  | { readonly kind: 'advertiseRouter' }
  | { readonly kind: 'updateNetwork'; readonly networks: readonly string[] }
  | { readonly kind: 'syncDomain'; readonly vmi: Vmi; readonly options: SyncOptions }
  | { readonly kind: 'reportDefined' }
  | { readonly kind: 'isolateEmulator'; readonly cpuSet: string | undefined }
  | { readonly kind: 'makeRealtime' }
  | { readonly kind: 'affinePit' }
  | { readonly kind: 'unmountHotplugVolumes' }
  | { readonly kind: 'raiseCollected' }
  | { readonly kind: 'writeStatus' };

/** A line for the log; `debug` is verbosity 3. */
export interface Note {
  readonly level: 'info' | 'debug' | 'trace' | 'warn';
  readonly message: string;
}

/** What one pass over a VMI should do and say. */
export interface Plan {
  readonly notes: readonly Note[];
  readonly steps: readonly Step[];
  /** The VM itself is worked on, so a failure is told to people. */
  readonly isSync?: boolean;
}
