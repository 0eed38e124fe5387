export { LauncherError } from './errors.ts';
export type { LauncherErrorCode } from './errors.ts';
export { parseDurationMs, parseFlags } from './config/flags.ts';
export type { LauncherFlags } from './config/flags.ts';
export { domainNameOf, launcherPaths, parseDomainName } from './config/paths.ts';
export type { LauncherPaths } from './config/paths.ts';
export { reasonOfState, statusOfState } from './domain/state.ts';
