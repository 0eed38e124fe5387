import { parseIp } from '@virtwire/host';
import { LauncherError } from '../errors.ts';
import type { GuestRoute } from './dhcp-options.ts';

/** What the node agent has left for the DHCP server of a bridge interface. */
export interface PhaseOneDhcp {
  readonly clientMac: Buffer;
  readonly clientAddress: string;
  readonly mask: Buffer;
  readonly gateway: string | undefined;
  readonly routes: readonly GuestRoute[];
}

/**
 * Reads `vif-cache-<pod link>.json`, written by node agents of v1.0 to v1.9 (fields that nobody reads may be missing).
 *
 * @returns undefined when the pod has no address to hand on (`IPAMDisabled`).
 * @throws {LauncherError} `NetworkFailed` for a file that is not of this form.
 * @source KubeVirt v1.9.0 pkg/network/cache/dhcpconfig.go
 */
export function parsePhaseOneFile(text: string): PhaseOneDhcp | undefined {
  const file = asObject(parse(text));
  if (file['IPAMDisabled'] === true) return undefined;
  const address = asObject(file['IP']);
  const clientAddress = asText(address['IP']);
  if (parseIp(clientAddress)?.length !== 4) {
    throw new LauncherError('NetworkFailed', `no IPv4 address in the pod interface's DHCP file: ${clientAddress}`);
  }
  const routes = Array.isArray(file['Routes']) ? file['Routes'].map(asObject) : [];
  return {
    clientMac: bytes(file['MAC']),
    clientAddress,
    mask: bytes(address['Mask']),
    gateway: asText(file['Gateway']) || undefined,
    routes: routes.map((route) => ({
      destination: destinationOf(route['Dst']),
      gateway: asText(route['Gw']) || undefined,
    })),
  };
}

function destinationOf(value: unknown): GuestRoute['destination'] {
  if (value === null || value === undefined) return undefined;
  const net = asObject(value);
  const ones = [...bytes(net['Mask'])].map((byte) => byte.toString(2).replaceAll('0', '').length);
  return { ip: asText(net['IP']), prefixLength: ones.reduce((sum, n) => sum + n, 0) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (caught) {
    throw LauncherError.from(caught, 'NetworkFailed', 'failed to read the pod interface’s DHCP file: ');
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function bytes(value: unknown): Buffer {
  return Buffer.from(asText(value), 'base64');
}
