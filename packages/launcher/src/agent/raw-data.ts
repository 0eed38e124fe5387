import type { Clock } from '../config/clock.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import type { TimedCache } from '../domain/timed-cache.ts';
import { createTimedCache } from '../domain/timed-cache.ts';
import { LauncherError } from '../errors.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** Field of a VMStats request, the agent's command for it, and how long its answer is served again. */
export const AGENT_DATA = [
  ['guestGetLoad', 'guest-get-load', 20 * SECOND_MS],
  ['guestGetCpuStats', 'guest-get-cpustats', 20 * SECOND_MS],
  ['guestGetDiskStats', 'guest-get-diskstats', 20 * SECOND_MS],
  ['guestGetTime', 'guest-get-time', MINUTE_MS],
  ['guestGetVcpus', 'guest-get-vcpus', MINUTE_MS],
  ['guestGetMemoryBlockInfo', 'guest-get-memory-block-info', MINUTE_MS],
  ['guestGetUsers', 'guest-get-users', MINUTE_MS],
  ['guestGetOsInfo', 'guest-get-osinfo', 5 * MINUTE_MS],
  ['guestGetDisks', 'guest-get-disks', 5 * MINUTE_MS],
  ['guestGetHostName', 'guest-get-host-name', 5 * MINUTE_MS],
  ['guestGetTimezone', 'guest-get-timezone', 5 * MINUTE_MS],
  ['guestNetworkGetRoute', 'guest-network-get-route', 5 * MINUTE_MS],
  ['guestNetworkGetInterfaces', 'guest-network-get-interfaces', 5 * MINUTE_MS],
  ['guestGetMemoryBlocks', 'guest-get-memory-blocks', 30 * MINUTE_MS],
] as const;

/** A field of a VMStats request that the agent answers. */
export type AgentDataField = (typeof AGENT_DATA)[number][0];

/** What the guest agent says, word for word, by field of the request. */
export type RawAgentData = Readonly<Record<AgentDataField, TimedCache<string>>>;

/** What the caches ask. */
export interface RawAgentDataDeps {
  /** The connection for calls that wait for the guest. */
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'agentCommand'>;
  readonly clock: Clock;
}

/** Creates the caches, empty; they are filled when they are asked. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go` */
export function createRawAgentData({ libvirt, clock }: RawAgentDataDeps, domainName: string): RawAgentData {
  const caches = AGENT_DATA.map(([field, command, lifetimeMs]) => {
    const ask = async (): Promise<string> => {
      try {
        const domain = await libvirt.lookupDomainByName(domainName);
        return await libvirt.agentCommand(domain, JSON.stringify({ execute: command }));
      } catch (caught) {
        throw LauncherError.from(caught, 'StatsUnavailable', `failed to get agent data for ${command}: `);
      }
    };
    return [field, createTimedCache(clock, lifetimeMs, ask)] as const;
  });
  return Object.fromEntries(caches) as RawAgentData;
}
