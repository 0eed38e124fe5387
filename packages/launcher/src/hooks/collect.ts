import { readdir } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { Logger } from '@virtwire/telemetry';
import { ProtoError } from '@virtwire/shared-proto';
import { askSidecar, HOOK_VERSIONS } from '@virtwire/shared-proto/hooks';
import type { HookVersion } from '@virtwire/shared-proto/hooks';
import type { Clock } from '../config/clock.ts';
import { goFileError, isMissing } from '../disks/go-error.ts';
import { LauncherError, textOf } from '../errors.ts';

/** A hook sidecar that said what it offers. */
export interface Sidecar {
  readonly socketPath: string;
  /** The newest version that both sides know. */
  readonly version: HookVersion;
  /** Names of the moments at which it wants to be called. */
  readonly hookPoints: readonly string[];
}

/** What collecting needs. */
export interface CollectDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends the wait early. */
  readonly signal?: AbortSignal;
}

/** How many sidecars are waited for, where, and how long. */
export interface CollectOptions {
  /** Each sidecar has a directory in it, and its socket there. */
  readonly baseDir: string;
  readonly count: number;
  readonly timeoutMs: number;
}

const SCAN_EVERY_MS = 300;
const DIAL_TIMEOUT_MS = 2_000;
const INFO_TIMEOUT_MS = 1_000;
const TOO_LATE = 'Failed to collect all expected sidecar hook sockets within given timeout';

/**
 * Waits until all hook sidecars have their sockets, and asks each one what it offers.
 *
 * @returns the sidecars, fewer when the wait was ended, in the order in which they were found. That is the order of their
 *   calls: the priorities that they name have no effect between sidecars, in the model either.
 * @throws {LauncherError} `HookFailed` when one does not come in time, does not say what it offers, or speaks no version
 *   that is known here.
 * @source KubeVirt v1.9.0 pkg/hooks/manager.go
 */
export async function collectSidecars(
  { clock, log, signal }: CollectDeps,
  { baseDir, count, timeoutMs }: CollectOptions,
): Promise<readonly Sidecar[]> {
  const found = new Map<string, Sidecar>();
  const giveUpAtMs = clock.now() + timeoutMs;
  const checkTime = (): void => {
    if (clock.now() >= giveUpAtMs) throw new LauncherError('HookFailed', TOO_LATE);
  };
  while (found.size < count && signal?.aborted !== true) {
    for (const socketPath of await listSockets(baseDir)) {
      if (found.has(socketPath)) continue;
      checkTime();
      const sidecar = await ask(socketPath, log);
      if (sidecar !== undefined) found.set(socketPath, sidecar);
    }
    if (found.size >= count) break;
    checkTime();
    await clock.sleep(Math.min(SCAN_EVERY_MS, giveUpAtMs - clock.now()), signal);
  }
  log.info('Collected all requested hook sidecar sockets');
  return [...found.values()];
}

/** Everything that is no directory in the directories of the sidecars, in the order of the names. */
async function listSockets(baseDir: string): Promise<readonly string[]> {
  const sockets: string[] = [];
  for (const dir of await list(baseDir)) {
    if (!dir.isDirectory) continue;
    const entries = await list(join(baseDir, dir.name)).catch((caught: unknown) => {
      // A sidecar may have taken its directory away between the two looks.
      if (isMissing((caught as Error).cause)) return [];
      throw caught;
    });
    for (const { name, isDirectory } of entries) if (!isDirectory) sockets.push(join(baseDir, dir.name, name));
  }
  return sockets;
}

async function list(dir: string): Promise<readonly { readonly name: string; readonly isDirectory: boolean }[]> {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    const shown = entries.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
    return shown.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  } catch (caught) {
    throw LauncherError.from(goFileError(caught, 'open', dir), 'HookFailed', '');
  }
}

/** @returns undefined for a sidecar that does not listen yet. */
async function ask(socketPath: string, log: Logger): Promise<Sidecar | undefined> {
  try {
    const options = { dialTimeoutMs: DIAL_TIMEOUT_MS, timeoutMs: INFO_TIMEOUT_MS };
    const { versions, hookPoints } = await askSidecar(socketPath, options);
    const version = HOOK_VERSIONS.find((known) => versions.includes(known));
    if (version !== undefined) return { socketPath, version, hookPoints: hookPoints.map(({ name }) => name) };
    const lists = `Exposed versions: [${versions.join(' ')}], supported versions: [${HOOK_VERSIONS.join(' ')}]`;
    throw new LauncherError('HookFailed', `Hook sidecar does not expose a supported version. ${lists}`);
  } catch (caught) {
    if (caught instanceof ProtoError && caught.code === 'DialFailed') {
      log.info({ reason: caught.message }, `Sidecar server might not be ready yet: ${socketPath}`);
      return undefined;
    }
    log.error({ reason: textOf(caught) }, `Failed to process sidecar socket: ${socketPath}`);
    throw caught instanceof LauncherError ? caught : LauncherError.from(caught, 'HookFailed', '');
  }
}
