import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { DomainEvent } from './domain-event.ts';

/** What the limit needs. */
export interface AgentEventLimitDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly deliver: (event: DomainEvent) => void;
}

/** Comings and goings of the agent that are told at once. */
const BURST = 10;
/** After them, one in so long. */
const EVERY_MS = 1_000;

/**
 * Passes events on, those of the agent no faster than their limit: a guest can open and close its agent's port as often
 * as it likes, and each time the handler is told and the agent is asked anew (FM-11.4). Of what comes too fast only the
 * newest state is kept; it is told when its time has come.
 */
export function createAgentEventLimit({ clock, log, deliver }: AgentEventLimitDeps): (event: DomainEvent) => void {
  let credit = BURST;
  let countedAtMs = clock.now();
  let newest: DomainEvent | undefined;

  function count(): void {
    const nowMs = clock.now();
    credit = Math.min(BURST, credit + (nowMs - countedAtMs) / EVERY_MS);
    countedAtMs = nowMs;
  }

  async function deliverNewest(): Promise<void> {
    for (;;) {
      await clock.sleep(EVERY_MS);
      count();
      const event = newest;
      newest = undefined;
      if (event === undefined) return;
      credit -= 1;
      deliver(event);
    }
  }

  let isHolding = false;
  return (event) => {
    if (event.agent === undefined) return deliver(event);
    count();
    if (!isHolding && credit >= 1) {
      credit -= 1;
      return deliver(event);
    }
    newest = event;
    if (isHolding) return;
    isHolding = true;
    log.info('The guest agent comes and goes too often, only its newest state is looked at');
    void deliverNewest().then(() => (isHolding = false));
  };
}
