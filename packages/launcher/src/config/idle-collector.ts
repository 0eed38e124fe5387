/** Collects garbage, all of it, at once. */
export type CollectGarbage = () => void;

const LOOK_EVERY_MS = 3_000;
/** CPU time of a look's span under which the process counts as quiet. */
const QUIET_US = 60_000;
/** CPU time since the last collection from which on another one pays. */
const BUSY_US = 300_000;

/** What the decision is made from; times in microseconds of CPU. */
export interface CpuFacts {
  readonly nowUs: number;
  readonly lastLookUs: number;
  readonly lastCollectionUs: number;
}

/** Whether garbage is to be collected: work was done since the last time, and none is being done now. */
export function isTimeToCollect({ nowUs, lastLookUs, lastCollectionUs }: CpuFacts): boolean {
  return nowUs - lastLookUs < QUIET_US && nowUs - lastCollectionUs > BUSY_US;
}

/**
 * Gives memory back when work is over. V8 by itself waits for the next allocation, which may be hours away in a
 * launcher whose VM just runs, and there is one launcher per VM on the node.
 */
export function startIdleCollector(collect: CollectGarbage, cpuUs: () => number = processCpuUs): Disposable {
  let lastLookUs = cpuUs();
  let lastCollectionUs = 0;
  const timer = setInterval(() => {
    const nowUs = cpuUs();
    if (isTimeToCollect({ nowUs, lastLookUs, lastCollectionUs })) {
      collect();
      lastCollectionUs = cpuUs();
      lastLookUs = lastCollectionUs;
    } else lastLookUs = nowUs;
  }, LOOK_EVERY_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function processCpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
