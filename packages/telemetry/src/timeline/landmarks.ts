/**
 * Messages that mark a VM's way from hand-over to agent. The first group is KubeVirt's own, to the letter, so that
 * timelines can be drawn from its logs too; `phaseChanged` and `agentConnected` are ours, logged by the handler once the
 * VMI's status was written.
 *
 * @source KubeVirt v1.9.0 logs of virt-handler and virt-launcher
 */
export const LANDMARK = {
  markedAsReady: 'Marked as ready',
  phaseLine: 'VMI is in phase: ',
  currentPodNetwork: 'Current pod network: ',
  desiredPodNetwork: 'Desired pod network: ',
  pipeAccepted: 'Accepted new notify pipe connection',
  domainDefined: 'Domain defined.',
  domainStarted: 'Domain started.',
  synced: 'Synced vmi',
  agentLifecycle: 'GuestAgentLifecycle event state 1 ',
  /** Followed by the phase, e.g. `VMI phase changed to Running`. */
  phaseChanged: 'VMI phase changed to ',
  agentConnected: 'VMI has condition AgentConnected',
} as const;
