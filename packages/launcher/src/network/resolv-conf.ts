import { isIPv4, isIPv6 } from 'node:net';

const DEFAULT_NAMESERVER = '8.8.8.8';
const DEFAULT_SEARCH = 'cluster.local';

/** What a pod's `/etc/resolv.conf` says. */
export interface ResolvConf {
  /** IPv4 name servers; empty when there are IPv6 ones only. */
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
  /** Search domains in lower case, all `search` lines joined. */
  readonly search: readonly string[];
}

/**
 * Reads a resolv.conf. A `nameserver` line counts if it starts in column one and has exactly two words.
 *
 * @source KubeVirt v1.9.0 pkg/network/dns/dns.go
 */
export function parseResolvConf(text: string): ResolvConf {
  const lines = text.split('\n');
  const servers = lines
    .filter((line) => line.startsWith('nameserver'))
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([, server, ...more]) => (server !== undefined && more.length === 0 ? [server] : []));
  const ipv4 = servers.filter((s) => isIPv4(s));
  const ipv6 = servers.filter((s) => isIPv6(s));
  const search = lines
    .filter((line) => line.startsWith('search'))
    .flatMap((line) => line.trim().split(/\s+/).slice(1))
    .map((domain) => domain.toLowerCase());
  return {
    ipv4: ipv4.length === 0 && ipv6.length === 0 ? [DEFAULT_NAMESERVER] : ipv4,
    ipv6,
    search: search.length === 0 ? [DEFAULT_SEARCH] : search,
  };
}

/** Search domains for a guest: with a subdomain, the domain of its headless service comes first. */
export function searchWithSubdomain(search: readonly string[], subdomain: string | undefined): readonly string[] {
  if (subdomain === undefined || subdomain === '') return search;
  const service = longestDomain(search.filter((d) => d.includes('.svc.')));
  if (service === undefined || service.startsWith(`${subdomain}.`)) return search;
  return [`${subdomain}.${service}`, ...search];
}

/** The longest of some domains, the first of equals. */
export function longestDomain(domains: readonly string[]): string | undefined {
  return domains.reduce<string | undefined>((best, d) => (best === undefined || d.length > best.length ? d : best), undefined); // prettier-ignore
}
