/** Remembers since when sockets do not answer. */
export interface Watchdog {
  /**
   * Takes the results of one round.
   *
   * @param failing sockets that could not be dialled in this round; all others count as fine.
   * @returns those that have failed for longer than the limit, in every round until they answer or vanish.
   */
  tick(nowMs: number, failing: readonly string[]): readonly string[];
}

/** Period of the rounds for a timeout: a third of it, plus one second. */
export function watchdogPeriodMs(timeoutMs: number): number {
  return (Math.floor(timeoutMs / 3_000) + 1) * 1_000;
}

/**
 * Says which sockets are dead: those that fail for strictly more than `timeoutMs`, counted in whole seconds.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/cache/domain-watcher.go (handleStaleSocketConnections)
 */
export function createWatchdog(timeoutMs: number): Watchdog {
  const since = new Map<string, number>();
  return {
    tick(nowMs, failing) {
      const nowSeconds = Math.floor(nowMs / 1000);
      const failed = new Set(failing);
      for (const socket of since.keys()) if (!failed.has(socket)) since.delete(socket);
      for (const socket of failed) if (!since.has(socket)) since.set(socket, nowSeconds);
      return failing.filter((socket) => (nowSeconds - (since.get(socket) ?? nowSeconds)) * 1_000 > timeoutMs);
    },
  };
}
