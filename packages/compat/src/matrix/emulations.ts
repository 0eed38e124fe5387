import type {
  EmulatedHandler,
  EmulatedHandlerOptions,
  EmulatedLauncher,
  EmulatedLauncherOptions,
} from '../emulate/api.ts';

/** Starts emulated peers; mutants replace or wrap them. */
export interface Emulations {
  startLauncher(options: EmulatedLauncherOptions): Promise<EmulatedLauncher>;
  startHandler(options: EmulatedHandlerOptions): Promise<EmulatedHandler>;
}
