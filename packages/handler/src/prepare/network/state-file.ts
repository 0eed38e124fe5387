import type { VmiInterface } from '../../model.ts';

/** How far the set-up of a network has come. */
export const NETWORK_STATE = { pending: 0, started: 1, finished: 2 } as const;

/** The state file of one network of a VMI. */
export interface StateFile {
  readonly iface?: object;
  readonly podIP?: string;
  readonly podIPs?: readonly string[];
  readonly networkState?: number;
}

/** Order in which Go prints an interface's fields; others follow as they come. */
const INTERFACE_KEYS = [
  'name',
  'model',
  'bridge',
  'slirp',
  'masquerade',
  'sriov',
  'macvtap',
  'passt',
  'passtBinding',
  'binding',
  'ports',
  'portRanges',
  'macAddress',
  'bootOrder',
  'pciAddress',
  'dhcpOptions',
  'tag',
  'acpiIndex',
  'state',
] as const;

/** A VMI's interface with its keys in Go's order, so that either side's files are the same. */
export function orderedInterface(iface: VmiInterface): object {
  const source = iface as unknown as Record<string, unknown>;
  const ordered = sortKeys(source, INTERFACE_KEYS);
  const ports = source['ports'];
  if (!Array.isArray(ports)) return ordered;
  const inOrder = (p: unknown): unknown =>
    typeof p === 'object' && p !== null ? sortKeys(p as Record<string, unknown>, ['name', 'protocol', 'port']) : p;
  return { ...ordered, ports: ports.map(inOrder) };
}

/** Text of a state file: two blanks of indent, keys in Go's order, no newline at the end. */
export function renderStateFile(state: StateFile): string {
  const { iface, podIP, podIPs, networkState } = state;
  const value = {
    ...(iface === undefined ? {} : { iface }),
    ...(podIP === undefined ? {} : { podIP }),
    ...(podIPs === undefined || podIPs.length === 0 ? {} : { podIPs }),
    ...(networkState === undefined || networkState === 0 ? {} : { networkState }),
  };
  return JSON.stringify(value, undefined, 2);
}

/** Reads a state file. @throws {SyntaxError} for a text that is no JSON object. */
export function parseStateFile(text: string): StateFile {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new SyntaxError('no JSON object');
  const fields = value as Record<string, unknown>;
  const ips = fields['podIPs'];
  return {
    ...(typeof fields['iface'] === 'object' && fields['iface'] !== null ? { iface: fields['iface'] } : {}),
    ...(typeof fields['podIP'] === 'string' ? { podIP: fields['podIP'] } : {}),
    ...(Array.isArray(ips) ? { podIPs: ips.filter((ip) => typeof ip === 'string') } : {}),
    ...(typeof fields['networkState'] === 'number' ? { networkState: fields['networkState'] } : {}),
  };
}

function sortKeys(source: Readonly<Record<string, unknown>>, order: readonly string[]): Record<string, unknown> {
  const known = order.filter((key) => key in source);
  const others = Object.keys(source).filter((key) => !order.includes(key));
  return Object.fromEntries([...known, ...others].map((key) => [key, source[key]]));
}
