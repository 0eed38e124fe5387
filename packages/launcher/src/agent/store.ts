import { isDeepStrictEqual } from 'node:util';
import type { AgentFacts } from './types.ts';

/** The part of the agent's facts that the Domain document shows. */
export type ShownAgentFacts = Pick<AgentFacts, 'interfaces' | 'os' | 'fsFreezeStatus'>;

/** What the agent told last, kept for the launcher's life. Never cleared, not even when the agent goes away. */
export interface AgentStore {
  facts(): AgentFacts;
  /**
   * Takes new facts over.
   *
   * @returns one update per changed kind that the Domain document shows, each with all three kinds as of that moment.
   */
  merge(facts: AgentFacts): readonly ShownAgentFacts[];
}

const SHOWN = ['interfaces', 'os', 'fsFreezeStatus'] as const;

/** Creates an empty store. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/agent-poller/agent_poller.go AsyncAgentStore` */
export function createAgentStore(): AgentStore {
  let facts: AgentFacts = {};
  return {
    facts: () => facts,
    merge(next) {
      const updates: ShownAgentFacts[] = [];
      for (const key of SHOWN) {
        if (!(key in next) || isDeepStrictEqual(facts[key], next[key])) continue;
        facts = { ...facts, [key]: next[key] };
        const { interfaces, os, fsFreezeStatus } = facts;
        updates.push({
          ...(interfaces === undefined ? {} : { interfaces }),
          ...(os === undefined ? {} : { os }),
          ...(fsFreezeStatus === undefined ? {} : { fsFreezeStatus }),
        });
      }
      facts = { ...facts, ...next };
      return updates;
    },
  };
}
