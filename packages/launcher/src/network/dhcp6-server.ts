import { openBoundUdp, parseIp, parseMac, RouteSocket } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError } from '../errors.ts';
import { parseDhcp6, renderDhcp6, renderDhcp6Options } from './dhcp6-message.ts';
import type { Dhcp6Message, Dhcp6Option } from './dhcp6-message.ts';
import { serveDatagrams } from './serve.ts';
import type { Answerer, DhcpServer } from './serve.ts';

const SERVER_PORT = 547;
const SERVERS_GROUP = 'ff02::1:2';
const LEASE_SECONDS = 999 * 24 * 60 * 60;
const KIND = {
  solicit: 1,
  advertise: 2,
  request: 3,
  confirm: 4,
  renew: 5,
  rebind: 6,
  reply: 7,
  release: 8,
  inform: 11,
};
const CODE = { clientId: 1, serverId: 2, iaNa: 3, iaAddress: 5, rapidCommit: 14, nameservers: 23 } as const;
const DUID_LINK_LAYER = Buffer.from([0, 3, 0, 1]);

/** A DHCPv6 server with one address. */
export interface Dhcp6ServerConfig {
  readonly bridge: string;
  readonly bridgeMac: string;
  readonly clientAddress: string;
  readonly nameservers: readonly string[];
}

/**
 * The whole of the server but its socket: every supported message gets the one address, asked for or not.
 *
 * @source KubeVirt v1.9.0 pkg/network/dhcp/serverv6/serverv6.go:60
 */
export function createAnswerer6(config: Dhcp6ServerConfig): Answerer {
  const address = ipv6Bytes(config.clientAddress);
  const tail: Dhcp6Option[] = [[CODE.serverId, Buffer.concat([DUID_LINK_LAYER, parseMac(config.bridgeMac)])]];
  if (config.nameservers.length > 0) tail.push([CODE.nameservers, Buffer.concat(config.nameservers.map(ipv6Bytes))]);
  return (bytes, from) => {
    const message = parseDhcp6(bytes);
    const clientId = message?.options.find(([code]) => code === CODE.clientId);
    const kind = message === undefined ? undefined : answerKind(message);
    if (message === undefined || clientId === undefined || kind === undefined) return undefined;
    const options = [clientId, ...rapidCommit(message), identityAssociation(message, address), ...tail];
    return { to: from, payload: renderDhcp6({ kind, transaction: message.transaction, options }) };
  };
}

/** Listens on the bridge, also for the group that clients ask. */
export async function startDhcp6Server(
  config: Dhcp6ServerConfig,
  log: Logger,
  onFailure: (error: Error) => void,
): Promise<DhcpServer> {
  const answer = createAnswerer6(config);
  const { bridge } = config;
  using routes = RouteSocket.open();
  const linkIndex = routes.link(bridge)?.index;
  if (linkIndex === undefined) throw new LauncherError('NetworkFailed', `no bridge ${bridge} for the DHCPv6 server`);
  const joinGroups = [{ group: SERVERS_GROUP, linkIndex }];
  const socket = await openBoundUdp({ family: 6, port: SERVER_PORT, device: bridge, joinGroups });
  log.info(`Starting DHCPv6 server on ${bridge}`);
  return serveDatagrams(socket, answer, log, (error) =>
    onFailure(LauncherError.from(error, 'NetworkFailed', 'DHCPv6 server: ')),
  );
}

function rapidCommit(message: Dhcp6Message): readonly Dhcp6Option[] {
  return wantsRapidCommit(message) ? [[CODE.rapidCommit, Buffer.alloc(0)]] : [];
}

function wantsRapidCommit(message: Dhcp6Message): boolean {
  return message.kind === KIND.solicit && message.options.some(([code]) => code === CODE.rapidCommit);
}

function answerKind(message: Dhcp6Message): number | undefined {
  const { kind } = message;
  if (kind === KIND.solicit) return wantsRapidCommit(message) ? KIND.reply : KIND.advertise;
  const others = [KIND.request, KIND.confirm, KIND.renew, KIND.rebind, KIND.release, KIND.inform];
  return others.includes(kind) ? KIND.reply : undefined;
}

/** Under the first identity of the request, or under none. */
function identityAssociation(message: Dhcp6Message, address: Buffer): Dhcp6Option {
  const asked = message.options.find(([code]) => code === CODE.iaNa)?.[1];
  const identity = asked === undefined || asked.length < 4 ? Buffer.alloc(4) : asked.subarray(0, 4);
  const lifetimes = Buffer.alloc(8);
  lifetimes.writeUInt32BE(LEASE_SECONDS, 0);
  lifetimes.writeUInt32BE(LEASE_SECONDS, 4);
  const inner = renderDhcp6Options([[CODE.iaAddress, Buffer.concat([address, lifetimes])]]);
  return [CODE.iaNa, Buffer.concat([identity, Buffer.alloc(8), inner])];
}

function ipv6Bytes(text: string): Buffer {
  const bytes = parseIp(text);
  if (bytes?.length === 16) return bytes;
  throw new LauncherError('NetworkFailed', `no IPv6 address: ${text}`);
}
