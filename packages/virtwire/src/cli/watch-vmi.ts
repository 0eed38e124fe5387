import type { Vmi } from '@virtwire/vm-model';
import type { VmiKey, VmiStore } from '../controller/store.ts';
import { VirtwireError } from '../errors.ts';
import { timerDelay } from '../machine/timer-delay.ts';

/** How long to wait, and for whom to stop. */
export interface WatchOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Told of every state that was seen. */
  readonly onChange?: (vmi: Vmi | undefined) => void;
  /** What is waited for, for the error. */
  readonly what: string;
}

/** Looks again now and then: a watch of a directory may miss a change under load. */
const LOOK_AGAIN_MS = 1_000;

/**
 * Waits until a VMI is as wanted.
 *
 * @throws {VirtwireError} `Timeout`; the signal's reason when it aborts.
 */
export async function waitForVmi<T>(
  store: VmiStore,
  key: VmiKey,
  wanted: (vmi: Vmi | undefined) => T | undefined,
  options: WatchOptions,
): Promise<T> {
  const { signal, timeoutMs, onChange, what } = options;
  return await new Promise<T>((resolve, reject) => {
    const end = new DisposableStack();
    const look = (): void => {
      try {
        const vmi = store.get(key);
        onChange?.(vmi);
        const found = wanted(vmi);
        if (found === undefined) return;
        end.dispose();
        resolve(found);
      } catch (caught) {
        end.dispose();
        reject(caught instanceof Error ? caught : new Error(String(caught)));
      }
    };
    const abort = (): void => {
      end.dispose();
      reject(signal?.reason instanceof Error ? signal.reason : new VirtwireError('Cancelled', `${what}: interrupted`));
    };
    end.use(
      store.watch((changed) => {
        if (changed === key) look();
      }),
    );
    const timer = setInterval(look, LOOK_AGAIN_MS);
    end.defer(() => clearInterval(timer));
    if (timeoutMs !== undefined) {
      const deadline = setTimeout(() => {
        end.dispose();
        reject(new VirtwireError('Timeout', `${what}: not within ${timeoutMs / 1_000} s`));
      }, timerDelay(timeoutMs));
      end.defer(() => clearTimeout(deadline));
    }
    signal?.addEventListener('abort', abort, { once: true });
    end.defer(() => signal?.removeEventListener('abort', abort));
    if (signal?.aborted === true) abort();
    else look();
  });
}
