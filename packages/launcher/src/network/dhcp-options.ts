import { isIPv4 } from 'node:net';
import { parseIp } from '@virtwire/host';
import type { DhcpOptions } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';
import { longestDomain } from './resolv-conf.ts';

/** A DHCP option: its code and its bytes. */
export type DhcpOption = readonly [code: number, value: Buffer];

/** An IPv4 route to tell a guest; no destination means the default route. */
export interface GuestRoute {
  readonly destination: { readonly ip: string; readonly prefixLength: number } | undefined;
  readonly gateway: string | undefined;
}

/** What a guest is told beside its address. */
export interface DhcpSettings {
  readonly mask: Buffer | undefined;
  readonly gateway: string | undefined;
  readonly routes: readonly GuestRoute[];
  readonly nameservers: readonly string[];
  readonly search: readonly string[];
  readonly mtu: number;
  readonly hostname: string;
  readonly extra: DhcpOptions | undefined;
}

const CODE = {
  mask: 1,
  router: 3,
  nameservers: 6,
  hostname: 12,
  domainName: 15,
  mtu: 26,
  ntp: 42,
  tftp: 66,
  bootFile: 67,
  search: 119,
  classlessRoutes: 121,
} as const;

const PRIVATE_CODES = { first: 224, last: 254 } as const;
const MAX_SEARCH_BYTES = 255;
const MAX_DOMAIN_LENGTH = 253;
const LABEL = /^[_a-z0-9]([_a-z0-9-]{0,61}[a-z0-9])?$/;
/** Stricter, but for the nothing behind a final dot. */
const LAST_LABEL = /^([a-z]([a-z0-9-]{0,61}[a-z0-9])?)?$/;

/**
 * Options of every answer but those that name its kind, server and lease; all are sent, asked for or not.
 *
 * @throws {LauncherError} `NetworkFailed` for a search list or time server that cannot be told.
 * @source KubeVirt v1.9.0 pkg/network/dhcp/server/server.go:130
 */
export function dhcpOptions(settings: DhcpSettings): readonly DhcpOption[] {
  const { mask, gateway, routes, nameservers, search, mtu, hostname, extra } = settings;
  const options = new Map<number, Buffer>();
  if (mask !== undefined) options.set(CODE.mask, mask);
  const router = gateway === undefined ? undefined : parseIp(gateway);
  if (router !== undefined) options.set(CODE.router, router);
  options.set(CODE.nameservers, Buffer.concat(nameservers.map((s) => parseIp(s) ?? Buffer.alloc(0))));
  options.set(CODE.hostname, Buffer.from(hostname));
  const domainName = longestDomain(search) ?? '';
  if (domainName !== '') options.set(CODE.domainName, Buffer.from(domainName));
  options.set(CODE.mtu, Buffer.from([mtu >> 8, mtu & 0xff]));
  const list = searchList(search);
  if (list.length > 0) options.set(CODE.search, list);
  if (routes.length > 0) options.set(CODE.classlessRoutes, classlessRoutes(routes));
  for (const [code, value] of extraOptions(extra)) options.set(code, value);
  return [...options];
}

function isValidDomain(domain: string): boolean {
  const labels = domain.split('.');
  const last = labels.pop() ?? '';
  const isShort = domain !== '' && domain.length <= MAX_DOMAIN_LENGTH;
  return isShort && LAST_LABEL.test(last) && labels.every((label) => LABEL.test(label));
}

/** Domains as DNS labels, one after the other, not compressed. A final dot leaves an empty label. */
function searchList(search: readonly string[]): Buffer {
  const encoded = search.map((domain) => {
    const labels = domain.split('.');
    if (!isValidDomain(domain)) throw new LauncherError('NetworkFailed', `Search domain is not valid: '${domain}'`);
    const parts = labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
    return Buffer.concat([...parts, Buffer.alloc(1)]);
  });
  const bytes = Buffer.concat(encoded);
  if (bytes.length > MAX_SEARCH_BYTES) {
    const message = `Search domains length exceeded allowable size: was ${bytes.length} long`;
    throw new LauncherError('NetworkFailed', message);
  }
  return bytes;
}

/** RFC 3442: prefix length, the bytes of the destination that matter, gateway. The default route comes last. */
function classlessRoutes(routes: readonly GuestRoute[]): Buffer {
  const isDefault = (r: GuestRoute): boolean => r.destination === undefined || r.destination.prefixLength === 0;
  const sorted = [...routes.filter((r) => !isDefault(r)), ...routes.filter(isDefault)];
  return Buffer.concat(
    sorted.map(({ destination, gateway }) => {
      const length = destination?.prefixLength ?? 0;
      const network = parseIp(destination?.ip ?? '0.0.0.0') ?? Buffer.alloc(4);
      const via = (gateway === undefined ? undefined : parseIp(gateway)) ?? Buffer.alloc(4);
      return Buffer.concat([Buffer.from([length]), network.subarray(0, Math.ceil(length / 8)), via]);
    }),
  );
}

function extraOptions(extra: DhcpOptions | undefined): DhcpOption[] {
  if (extra === undefined) return [];
  const options: DhcpOption[] = [];
  if (extra.tftpServerName) options.push([CODE.tftp, Buffer.from(extra.tftpServerName)]);
  if (extra.bootFileName) options.push([CODE.bootFile, Buffer.from(extra.bootFileName)]);
  const servers = (extra.ntpServers ?? []).map((server) => {
    if (isIPv4(server)) return parseIp(server) ?? Buffer.alloc(0);
    throw new LauncherError('NetworkFailed', `Could not parse NTP server as IPv4 address: ${server}`);
  });
  if (servers.length > 0) options.push([CODE.ntp, Buffer.concat(servers)]);
  for (const { option, value } of extra.privateOptions ?? []) {
    if (option >= PRIVATE_CODES.first && option <= PRIVATE_CODES.last) options.push([option, Buffer.from(value)]);
  }
  return options;
}
