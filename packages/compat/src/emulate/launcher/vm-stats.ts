import type { Fields } from '../schema/release-schema.ts';
import { GRPC } from '../transport/grpc-frames.ts';
import { GUEST_OS } from './guest.ts';
import { StatusFailure } from './outcome.ts';
import type { Vm } from './vm.ts';

const AGENT_VERSION = '10.0.0';
const NO_AGENT = 'Guest agent is not responding: QEMU guest agent is not connected';

/** Raw replies of the guest agent, by the field of the request that asks for them. */
const AGENT_REPLIES: Readonly<Record<string, unknown>> = {
  guestGetLoad: { return: { load1m: 0.5, load5m: 0.25, load15m: 0.125 } },
  guestGetCpuStats: { return: [] },
  guestGetDiskStats: { return: [] },
  guestGetTime: { return: 1_700_000_000_000_000_000n },
  guestGetVcpus: { return: [{ 'logical-id': 0, online: true, 'can-offline': false }] },
  guestGetMemoryBlockInfo: { return: { size: 134_217_728 } },
  guestGetUsers: { return: [] },
  guestGetOsInfo: { return: { id: GUEST_OS.Id, name: GUEST_OS.Name } },
  guestGetDisks: { return: [] },
  guestGetHostName: { return: { 'host-name': 'emulated-guest' } },
  guestGetTimezone: { return: { zone: 'UTC', offset: 0 } },
  guestNetworkGetRoute: { return: [] },
  guestNetworkGetInterfaces: { return: [] },
  guestGetMemoryBlocks: { return: [] },
};

const success = (message: string): Fields => ({ success: true, message });

/** The agent's command for a field: `guestGetLoad` asks `guest-get-load`, `guestGetOsInfo` `guest-get-osinfo`. */
function commandOf(field: string): string {
  const whole = field.replace(
    /(Os|Cpu|Disk)(Info|Stats)/,
    (_all, what: string, kind: string) => what + kind.toLowerCase(),
  );
  return whole.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function renderReply(reply: unknown): string {
  return JSON.stringify(reply, (_key, value: unknown) => (typeof value === 'bigint' ? Number(value) : value));
}

/**
 * GetVMStats: what was asked for, each part with its own outcome; one that fails makes the whole fail.
 *
 * @param domainStats what GetDomainStats answers.
 * @throws {StatusFailure} when the launcher does not collect statistics, as by default.
 * @source wire.md 6 GetVMStats
 */
export function vmStats(
  { vm, collectsStats }: { readonly vm: Vm; readonly collectsStats: boolean },
  request: Fields,
  domainStats: () => Fields,
): Fields {
  if (!collectsStats) throw new StatusFailure(GRPC.unknown, 'VMStatsCollector feature gate is not enabled');
  const isAsked = (name: string): boolean => request[name] !== undefined;
  const agentItems = Object.keys(AGENT_REPLIES).filter(isAsked);
  const failed = vm.isAgentConnected ? [] : agentItems;
  const replyTo = (name: string): Fields =>
    vm.isAgentConnected ? success(renderReply(AGENT_REPLIES[name])) : { message: NO_AGENT };
  const dirtyRateStats = { response: { success: true }, dirtyRateMbs: 2n };
  const reasons = failed.map((name) => `agent data ${commandOf(name)}: ${NO_AGENT}`).join('; ');
  return {
    ...(failed.length > 0 ? { response: { message: reasons } } : {}),
    ...(isAsked('domainStats') ? { domainStats: { response: { success: true }, ...domainStats() } } : {}),
    ...(isAsked('dirtyRate') ? { dirtyRateStats } : {}),
    ...(agentItems.length > failed.length ? { guestAgentVersion: success(AGENT_VERSION) } : {}),
    ...Object.fromEntries(agentItems.map((name) => [name, replyTo(name)])),
  };
}
