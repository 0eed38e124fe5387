import { setTimeout as sleep } from 'node:timers/promises';
import { CompatError } from '../errors.ts';

const STEP_MS = 4;
const DEFAULT_LIMIT_MS = 12_000;

/**
 * Waits until `find` finds something.
 *
 * @param state told when it never does: how far things came.
 * @throws {CompatError} `WaitTimeout`.
 */
export async function eventually<T>(
  what: string,
  find: () => T | undefined | false,
  options: { readonly limitMs?: number; readonly state?: () => string; readonly signal?: AbortSignal } = {},
): Promise<T> {
  const giveUpAtMs = Date.now() + (options.limitMs ?? DEFAULT_LIMIT_MS);
  for (;;) {
    options.signal?.throwIfAborted();
    const found = find();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > giveUpAtMs) {
      const state = options.state?.();
      throw new CompatError('WaitTimeout', `${what} did not happen${state === undefined ? '' : `; ${state}`}`);
    }
    await sleep(STEP_MS);
  }
}
