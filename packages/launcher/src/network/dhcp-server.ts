import { openBoundUdp, parseIp } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError } from '../errors.ts';
import { BROADCAST_FLAG, DHCP_KIND, parseDhcpRequest, renderDhcpReply } from './dhcp-message.ts';
import type { DhcpRequest } from './dhcp-message.ts';
import { dhcpOptions } from './dhcp-options.ts';
import type { DhcpOption, DhcpSettings } from './dhcp-options.ts';
import { serveDatagrams } from './serve.ts';
import type { Answerer, DhcpServer } from './serve.ts';

const SERVER_PORT = 67;
const LEASE_SECONDS = 999 * 24 * 60 * 60;
const ANY = '0.0.0.0';
const BROADCAST = '255.255.255.255';
const OPTION = { lease: 51, server: 54 } as const;

/** A DHCPv4 server with one client. */
export interface DhcpServerConfig extends DhcpSettings {
  /** Link that the guest's tap is a port of. */
  readonly bridge: string;
  readonly serverAddress: string;
  readonly clientAddress: string;
  /** The only client that is answered; undefined answers anyone. */
  readonly clientMac: Buffer | undefined;
}

/**
 * The whole of the server but its socket. DISCOVER gets OFFER, REQUEST gets ACK, always with the one address and all
 * options; nothing else is answered.
 *
 * @throws {LauncherError} `NetworkFailed` for settings that cannot be told to a guest.
 * @source KubeVirt v1.9.0 pkg/network/dhcp/server/server.go:84
 */
export function createAnswerer(config: DhcpServerConfig): Answerer {
  const lease = Buffer.alloc(4);
  lease.writeUInt32BE(LEASE_SECONDS);
  const server = addressBytes(config.serverAddress);
  const clientAddress = addressBytes(config.clientAddress);
  const options: readonly DhcpOption[] = [[OPTION.server, server], [OPTION.lease, lease], ...dhcpOptions(config)];
  return (message, from) => {
    const request = parseDhcpRequest(message);
    const kind = request === undefined ? undefined : answerKind(request);
    if (request === undefined || kind === undefined) return undefined;
    if (config.clientMac !== undefined && !config.clientMac.equals(request.hardware)) return undefined;
    const isBroadcast = from.address === ANY || (request.flags & BROADCAST_FLAG) !== 0;
    return {
      to: { address: isBroadcast ? BROADCAST : from.address, port: from.port },
      payload: renderDhcpReply({ kind, request, clientAddress, options }),
    };
  };
}

/**
 * Listens on the bridge. Packets that cannot be read are dropped; a guest can do no more than not get an address.
 *
 * @param onFailure told when the socket has died; the guest then gets no address any more.
 */
export async function startDhcpServer(
  config: DhcpServerConfig,
  log: Logger,
  onFailure: (error: Error) => void,
): Promise<DhcpServer> {
  const answer = createAnswerer(config);
  const socket = await openBoundUdp({ family: 4, port: SERVER_PORT, device: config.bridge });
  log.info(`Starting DHCPv4 server on ${config.bridge}`);
  return serveDatagrams(socket, answer, log, (error) =>
    onFailure(LauncherError.from(error, 'NetworkFailed', 'DHCP server: ')),
  );
}

function answerKind(request: DhcpRequest): number | undefined {
  if (request.kind === DHCP_KIND.discover) return DHCP_KIND.offer;
  return request.kind === DHCP_KIND.request ? DHCP_KIND.ack : undefined;
}

function addressBytes(text: string): Buffer {
  const bytes = parseIp(text);
  if (bytes?.length === 4) return bytes;
  throw new LauncherError('NetworkFailed', `no IPv4 address: ${text}`);
}
