export { LauncherError } from './errors.ts';
export type { LauncherErrorCode } from './errors.ts';
export { parseFlags, renderFlagHelp } from './config/flags.ts';
export type { LauncherFlags } from './config/flags.ts';
export { launcherPaths } from './config/paths.ts';
export type { LauncherPaths } from './config/paths.ts';
