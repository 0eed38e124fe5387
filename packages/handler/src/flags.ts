import { hostname } from 'node:os';
import { parseDuration } from '@virtwire/vm-model';
import type { HandlerConfig } from './config.ts';
import { DEFAULT_HANDLER_CONFIG } from './config.ts';
import { errorText, HandlerError } from './errors.ts';

const text = { type: 'string' } as const;

/**
 * Flags of virt-handler that this handler acts on, for Node's `parseArgs`; names and defaults are KubeVirt's.
 *
 * @source KubeVirt v1.9.0 cmd/virt-handler/virt-handler.go:719
 */
export const HANDLER_FLAGS = {
  'hostname-override': text,
  'pod-ip-address': text,
  'kubevirt-share-dir': text,
  'kubevirt-private-dir': text,
  'kubelet-pods-dir': text,
  'watchdog-timeout': text,
  'domain-resync-period-seconds': text,
  'health-address': text,
} as const;

/** Values of {@link HANDLER_FLAGS} as `parseArgs` gives them. */
export type HandlerFlagValues = { readonly [K in keyof typeof HANDLER_FLAGS]?: string | undefined };

function duration(flag: keyof HandlerFlagValues, value: string | undefined, fallbackMs: number): number {
  if (value === undefined) return fallbackMs;
  try {
    const ms = parseDuration(value);
    if (ms > 0) return ms;
  } catch (error) {
    throw new HandlerError('UsageError', `--${flag}: ${errorText(error)}`, { cause: error });
  }
  throw new HandlerError('UsageError', `--${flag}: "${value}" must be longer than nothing`);
}

function seconds(flag: keyof HandlerFlagValues, value: string | undefined, fallbackMs: number): number {
  if (value === undefined) return fallbackMs;
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value) * 1_000;
  throw new HandlerError('UsageError', `--${flag}: "${value}" is no number of seconds`);
}

/**
 * Settings from the command line; what is not given is KubeVirt's default, the node's name the machine's.
 *
 * @throws {HandlerError} `UsageError` that names the flag.
 */
export function handlerConfig(flags: HandlerFlagValues): HandlerConfig {
  const defaults = DEFAULT_HANDLER_CONFIG;
  return {
    ...defaults,
    nodeName: flags['hostname-override'] ?? hostname(),
    ownPodIp: flags['pod-ip-address'],
    shareDir: flags['kubevirt-share-dir'] ?? defaults.shareDir,
    privateDir: flags['kubevirt-private-dir'] ?? defaults.privateDir,
    podsDir: flags['kubelet-pods-dir'] ?? defaults.podsDir,
    watchdogTimeoutMs: duration('watchdog-timeout', flags['watchdog-timeout'], defaults.watchdogTimeoutMs),
    domainResyncPeriodMs: seconds(
      'domain-resync-period-seconds',
      flags['domain-resync-period-seconds'],
      defaults.domainResyncPeriodMs,
    ),
    health: flags['health-address'],
  };
}
