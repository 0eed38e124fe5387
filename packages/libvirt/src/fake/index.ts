/** A libvirt daemon in memory, for tests and simulation. */
export { FakeDaemon, startFakeDaemon } from './daemon.ts';
export type { FakeDaemonOptions, ReceivedCall } from './daemon.ts';
export type { FakeDomain } from './domain.ts';
export type { FakeConsole } from './console.ts';
export type { FakeJob } from './job.ts';
export type { FakeHypervisor, HostFacts } from './hypervisor.ts';
export type { FaultAction, FaultPlan, FaultTarget } from './faults.ts';
export { AgentError } from './guest.ts';
export type { AgentCommand, AgentHandler, GuestBehaviour } from './guest.ts';
export { daemonError } from './errors.ts';
