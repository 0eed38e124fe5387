import type { LibvirtPort } from '../domain/libvirt-port.ts';

type AgentPort = Pick<LibvirtPort, 'agentCommand'>;

/**
 * Agent commands of which each is under way once at most: whoever asks the same meanwhile gets the same answer. Probes of
 * an agent that hangs would take all places of the connection otherwise, down to that of a kill.
 */
export function sharingAnswers(libvirt: AgentPort): AgentPort['agentCommand'] {
  const asking = new Map<string, Promise<string>>();
  return (domain, command) => {
    const key = `${domain.uuid} ${command}`;
    const running = asking.get(key);
    if (running !== undefined) return running;
    const answer = libvirt.agentCommand(domain, command).finally(() => asking.delete(key));
    asking.set(key, answer);
    return answer;
  };
}
