/** Helpers for tests against real libvirt daemons. */
export { privateDaemonObstacle, startPrivateDaemon } from './private-daemon.ts';
export type { PrivateDaemon, PrivateDaemonOptions } from './private-daemon.ts';
export { tinyDomainXml } from './domain-xml.ts';
export type { TinyDomain } from './domain-xml.ts';
