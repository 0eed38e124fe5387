import {
  DomainGuestInfoTypes as Info,
  DomainInterfaceAddressesSource,
  ErrorDomain,
  ErrorNumber,
} from '../../gen/constants.gen.ts';
import { typedParams } from '../../typed-params.ts';
import type { TypedParam } from '../../typed-params.ts';
import type { FakeDomain } from '../domain.ts';
import { daemonError } from '../errors.ts';
import type { AgentCommand } from '../guest.ts';
import { domainOf } from './context.ts';
import type { CallHandlers } from './context.ts';

/** Everything that goes through the guest agent or the monitor. */
export const agentCalls: CallHandlers = {
  QEMU_DOMAIN_AGENT_COMMAND: (args, context) => {
    const domain = domainOf(args, context);
    const result = domain.askAgent(parseCommand(args.cmd));
    return { result: args.timeout === 0 ? null : JSON.stringify({ return: result }) };
  },
  QEMU_DOMAIN_MONITOR_COMMAND: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    if ((args.flags & 1) !== 0) return { result: '' };
    return { result: JSON.stringify({ ...monitorAnswer(domain, parseCommand(args.cmd)), id: 'libvirt-1' }) };
  },
  DOMAIN_AGENT_SET_RESPONSE_TIMEOUT: (args, context) => {
    domainOf(args, context);
    return { result: 0 };
  },
  DOMAIN_GET_GUEST_INFO: (args, context) => ({ params: guestInfo(domainOf(args, context), args.types) }),
  DOMAIN_INTERFACE_ADDRESSES: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    if (args.source !== DomainInterfaceAddressesSource.AGENT) return { ifaces: [] };
    return { ifaces: interfacesOf(domain).map(toWireInterface) };
  },
  DOMAIN_FSFREEZE: (args, context) => ({
    filesystems: Number(domainOf(args, context).askAgent(withMountpoints('guest-fsfreeze-freeze', args.mountpoints))),
  }),
  DOMAIN_FSTHAW: (args, context) => ({
    filesystems: Number(domainOf(args, context).askAgent(withMountpoints('guest-fsfreeze-thaw', args.mountpoints))),
  }),
  DOMAIN_GET_FSINFO: (args, context) => {
    const info = filesystemsOf(domainOf(args, context)).map(({ name, mountpoint, type }) => ({
      mountpoint,
      name,
      fstype: type,
      dev_aliases: [],
    }));
    return { info, ret: info.length };
  },
  DOMAIN_SET_USER_PASSWORD: (args, context) => {
    const command = { execute: 'guest-set-user-password', arguments: { username: args.user, password: args.password } };
    domainOf(args, context).askAgent(command);
  },
  DOMAIN_AUTHORIZED_SSH_KEYS_GET: (args, context) => {
    const answer = domainOf(args, context).askAgent({
      execute: 'guest-ssh-get-authorized-keys',
      arguments: { username: args.user },
    });
    return { keys: (answer as { readonly keys: readonly string[] }).keys };
  },
  DOMAIN_AUTHORIZED_SSH_KEYS_SET: (args, context) => {
    const command = { execute: 'guest-ssh-add-authorized-keys', arguments: { username: args.user, keys: args.keys } };
    domainOf(args, context).askAgent(command);
  },
};

interface GuestInterface {
  readonly name: string;
  readonly 'hardware-address'?: string;
  readonly 'ip-addresses'?: readonly { 'ip-address': string; 'ip-address-type': string; prefix: number }[];
}

interface GuestFilesystem {
  readonly name: string;
  readonly mountpoint: string;
  readonly type: string;
  readonly 'total-bytes'?: number;
  readonly 'used-bytes'?: number;
}

interface GuestUser {
  readonly user: string;
  readonly 'login-time'?: number;
}

function parseCommand(text: string): AgentCommand {
  try {
    return JSON.parse(text) as AgentCommand;
  } catch {
    throw daemonError(ErrorNumber.INTERNAL_ERROR, ErrorDomain.NONE, `internal error: cannot parse json ${text}`);
  }
}

function monitorAnswer(domain: FakeDomain, command: AgentCommand): Record<string, unknown> {
  const isRunning = domain.state === 1;
  if (command.execute === 'query-status') {
    return { return: { status: isRunning ? 'running' : 'paused', singlestep: false, running: isRunning } };
  }
  const desc = `The command ${command.execute} has not been found`;
  return { error: { class: 'CommandNotFound', desc } };
}

function withMountpoints(execute: string, mountpoints: readonly string[]): AgentCommand {
  return mountpoints.length === 0 ? { execute } : { execute, arguments: { mountpoints } };
}

// The answers come from the test's own agent or the default one; both speak qemu-guest-agent's schema.
function interfacesOf(domain: FakeDomain): readonly GuestInterface[] {
  return domain.askAgent({ execute: 'guest-network-get-interfaces' }) as readonly GuestInterface[];
}

function filesystemsOf(domain: FakeDomain): readonly GuestFilesystem[] {
  return domain.askAgent({ execute: 'guest-get-fsinfo' }) as readonly GuestFilesystem[];
}

function toWireInterface(one: GuestInterface) {
  const addrs = (one['ip-addresses'] ?? []).map((address) => ({
    type: address['ip-address-type'] === 'ipv6' ? 1 : 0,
    addr: address['ip-address'],
    prefix: address.prefix,
  }));
  return { name: one.name, hwaddr: one['hardware-address'] ?? null, addrs };
}

function guestInfo(domain: FakeDomain, types: number): TypedParam[] {
  const wants = (type: number): boolean => types === 0 || (types & type) !== 0;
  const all = Object.values(Info).reduce((sum, value) => sum | value, 0);
  if ((types & ~all) !== 0) {
    const text = `invalid argument: unsupported guest information types '0x${types.toString(16)}'`;
    throw daemonError(ErrorNumber.INVALID_ARG, ErrorDomain.QEMU, text);
  }
  const params: TypedParam[] = [];
  if (wants(Info.USERS)) params.push(...userParams(domain));
  if (wants(Info.OS)) params.push(...osParams(domain));
  if (wants(Info.TIMEZONE)) {
    const zone = domain.askAgent({ execute: 'guest-get-timezone' }) as {
      readonly zone?: string;
      readonly offset: number;
    };
    params.push(...typedParams({ 'timezone.name': zone.zone, 'timezone.offset': zone.offset }));
  }
  if (wants(Info.HOSTNAME)) {
    const host = domain.askAgent({ execute: 'guest-get-host-name' }) as { readonly 'host-name': string };
    params.push(...typedParams({ hostname: host['host-name'] }));
  }
  if (wants(Info.FILESYSTEM)) params.push(...filesystemParams(domain));
  if (wants(Info.INTERFACES)) params.push(...interfaceParams(domain));
  return params;
}

function userParams(domain: FakeDomain): TypedParam[] {
  const users = domain.askAgent({ execute: 'guest-get-users' }) as readonly GuestUser[];
  return [
    count('user.count', users.length),
    ...users.flatMap((user, i) =>
      typedParams({
        [`user.${String(i)}.name`]: user.user,
        [`user.${String(i)}.login-time`]: BigInt(Math.round((user['login-time'] ?? 0) * 1_000)),
      }),
    ),
  ];
}

function osParams(domain: FakeDomain): TypedParam[] {
  const os = domain.askAgent({ execute: 'guest-get-osinfo' }) as Readonly<Record<string, string>>;
  return typedParams(Object.fromEntries(Object.entries(os).map(([name, value]) => [`os.${name}`, value])));
}

function filesystemParams(domain: FakeDomain): TypedParam[] {
  const all = filesystemsOf(domain);
  if (all.length === 0) return [];
  return [
    count('fs.count', all.length),
    ...all.flatMap((fs, i) => [
      ...typedParams({
        [`fs.${String(i)}.name`]: fs.name,
        [`fs.${String(i)}.mountpoint`]: fs.mountpoint,
        [`fs.${String(i)}.fstype`]: fs.type,
        [`fs.${String(i)}.total-bytes`]: optionalBytes(fs['total-bytes']),
        [`fs.${String(i)}.used-bytes`]: optionalBytes(fs['used-bytes']),
      }),
      count(`fs.${String(i)}.disk.count`, 0),
    ]),
  ];
}

function interfaceParams(domain: FakeDomain): TypedParam[] {
  const all = interfacesOf(domain);
  return [
    count('if.count', all.length),
    ...all.flatMap((one, i) => {
      const addresses = one['ip-addresses'] ?? [];
      return [
        ...typedParams({ [`if.${String(i)}.name`]: one.name, [`if.${String(i)}.hwaddr`]: one['hardware-address'] }),
        count(`if.${String(i)}.addr.count`, addresses.length),
        ...addresses.flatMap((address, j) => [
          ...typedParams({
            [`if.${String(i)}.addr.${String(j)}.type`]: address['ip-address-type'],
            [`if.${String(i)}.addr.${String(j)}.addr`]: address['ip-address'],
          }),
          count(`if.${String(i)}.addr.${String(j)}.prefix`, address.prefix),
        ]),
      ];
    }),
  ];
}

function count(field: string, value: number): TypedParam {
  return { field, type: 'uint', value };
}

function optionalBytes(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(value);
}
