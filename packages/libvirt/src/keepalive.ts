import type { KeepalivePolicy } from './options.ts';

const DEFAULT_INTERVAL_MS = 5_000;
const DEFAULT_COUNT = 5;

/** Watches for silence of the peer. */
export interface Keepalive extends Disposable {
  /** Any byte from the peer counts as a sign of life. */
  heard(): void;
}

/**
 * Pings a silent peer once per interval and gives up after `count` pings without a byte back.
 *
 * @source libvirt virkeepalive.c: same defaults and counting as the daemon's own pings
 */
export function startKeepalive(
  policy: KeepalivePolicy | false,
  actions: { readonly ping: () => void; readonly onDead: () => void },
): Keepalive {
  if (policy === false) return { heard: () => undefined, [Symbol.dispose]: () => undefined };
  const count = policy.count ?? DEFAULT_COUNT;
  let wasHeard = false;
  let unanswered = 0;
  const timer = setInterval(() => {
    if (wasHeard) {
      wasHeard = false;
      unanswered = 0;
    } else if (unanswered >= count) {
      clearInterval(timer);
      actions.onDead();
    } else {
      unanswered++;
      actions.ping();
    }
  }, policy.intervalMs ?? DEFAULT_INTERVAL_MS);
  return {
    heard: () => {
      wasHeard = true;
    },
    [Symbol.dispose]: () => {
      clearInterval(timer);
    },
  };
}
