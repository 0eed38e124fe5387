import type { Params, ParamValue } from '../domain/libvirt-port.ts';
import { MAX_ENTRIES, MAX_SHOWN_CHARS } from './parse-reply.ts';
import type { AgentFacts, AgentInterface, AgentLoad, AgentOsInfo, AgentUser } from './types.ts';

/** libvirt's bits of what its guest info call can ask for. */
export const GUEST_INFO = { users: 1, os: 2, timezone: 4, hostname: 8, interfaces: 64, load: 128 } as const;

const MAX_INT64 = 2n ** 63n - 1n;

function text(value: ParamValue | undefined): string {
  return typeof value === 'string' ? value.slice(0, MAX_SHOWN_CHARS) : '';
}

function count(params: Params, name: string): number {
  const value = Number(params.get(name) ?? 0);
  return Number.isFinite(value) ? Math.min(Math.max(Math.trunc(value), 0), MAX_ENTRIES) : 0;
}

function parseOs(params: Params): AgentOsInfo {
  const os = (key: string): string => text(params.get(`os.${key}`));
  return {
    Name: os('name'),
    KernelRelease: os('kernel-release'),
    Version: os('version'),
    PrettyName: os('pretty-name'),
    VersionId: os('version-id'),
    KernelVersion: os('kernel-version'),
    Machine: os('machine'),
    Id: os('id'),
  };
}

function parseInterface(params: Params, prefix: string): AgentInterface {
  const addresses: { type: string; addr: string }[] = [];
  for (let i = 0; i < count(params, `${prefix}.addr.count`); i++) {
    const type = text(params.get(`${prefix}.addr.${i}.type`));
    addresses.push({ type, addr: text(params.get(`${prefix}.addr.${i}.addr`)) });
  }
  const first = addresses.find((a) => a.type === 'ipv4') ?? addresses[0];
  return {
    Mac: text(params.get(`${prefix}.hwaddr`)),
    Ip: first?.addr ?? '',
    IPs: addresses.map((a) => a.addr),
    InterfaceName: text(params.get(`${prefix}.name`)),
  };
}

function parseInterfaces(params: Params): readonly AgentInterface[] {
  const interfaces: AgentInterface[] = [];
  for (let i = 0; i < count(params, 'if.count'); i++) interfaces.push(parseInterface(params, `if.${i}`));
  return interfaces.filter((nic) => nic.InterfaceName !== 'lo');
}

function loginTimeSeconds(value: ParamValue | undefined): number {
  if (typeof value === 'bigint') return value > MAX_INT64 ? 0 : Number(value) / 1_000;
  return typeof value === 'number' && value < Number(MAX_INT64) ? value / 1_000 : 0;
}

function parseUsers(params: Params): readonly AgentUser[] {
  const users: AgentUser[] = [];
  for (let i = 0; i < count(params, 'user.count'); i++) {
    users.push({
      name: text(params.get(`user.${i}.name`)),
      domain: text(params.get(`user.${i}.domain`)),
      loginTime: loginTimeSeconds(params.get(`user.${i}.login-time`)),
    });
  }
  return users;
}

function parseLoad(params: Params): AgentLoad {
  const load = (span: string): number | undefined => {
    const value = params.get(`load.${span}`);
    return typeof value === 'number' ? value : undefined;
  };
  return { load1m: load('1m'), load5m: load('5m'), load15m: load('15m') };
}

/**
 * What libvirt's guest info call tells, for the types that were asked for.
 *
 * @param types the bits of GUEST_INFO in the call: a list that was asked for and is missing is an empty list.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/agent-poller/agent_poller.go
 */
export function parseGuestInfoParams(params: Params, types: number): AgentFacts {
  const asked = (bit: number): boolean => (types & bit) !== 0;
  const offset = params.get('timezone.offset');
  const zone = params.get('timezone.name');
  return {
    ...(asked(GUEST_INFO.os) ? { os: parseOs(params) } : {}),
    ...(asked(GUEST_INFO.hostname) ? { hostname: text(params.get('hostname')) } : {}),
    ...(asked(GUEST_INFO.timezone)
      ? {
          timezone: { zone: text(zone), offset: typeof offset === 'number' || typeof offset === 'bigint' ? offset : 0 },
        }
      : {}),
    ...(asked(GUEST_INFO.interfaces) ? { interfaces: parseInterfaces(params) } : {}),
    ...(asked(GUEST_INFO.users) ? { users: parseUsers(params) } : {}),
    ...(asked(GUEST_INFO.load) ? { load: parseLoad(params) } : {}),
  };
}
