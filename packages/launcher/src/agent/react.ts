import type { Logger } from '@virtwire/telemetry';
import type { DomainEvent } from '../events/domain-event.ts';
import { AGENT_STATE, LIFECYCLE } from '../events/domain-event.ts';
import type { AgentPoller } from './poller.ts';

/** Starts and stops a poller as libvirt's events say. */
export interface AgentReaction {
  react(event: DomainEvent): void;
}

/**
 * Ties a poller to events: it runs from the agent's connect to its disconnect, and rests while the VM is suspended.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/agent-poller/agent_poller.go:380
 */
export function createAgentReaction(poller: AgentPoller, log: Logger): AgentReaction {
  let isConnected = false;
  const stop = (domainName: string, why: string): void => {
    if (poller.isRunning) log.info(`Stopping agent poller for ${domainName} due to ${why}`);
    poller.stop();
  };
  const start = (domainName: string, why: string): void => {
    if (!poller.isRunning) log.info(`Starting agent poller for ${domainName} due to ${why}`);
    poller.start();
  };
  return {
    react({ domainName, lifecycle, agent }) {
      if (lifecycle?.event === LIFECYCLE.suspended) stop(domainName, 'domain suspend');
      if (lifecycle?.event === LIFECYCLE.resumed && isConnected) start(domainName, 'domain resume (agent connected)');
      if (agent?.state === AGENT_STATE.disconnected) {
        isConnected = false;
        stop(domainName, 'agent disconnect');
      }
      if (agent?.state === AGENT_STATE.connected) {
        isConnected = true;
        start(domainName, 'agent connect');
      }
    },
  };
}
