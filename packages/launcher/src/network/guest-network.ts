import * as fs from 'node:fs';
import { join } from 'node:path';
import { errnoOf, RouteSocket } from '@virtwire/host';
import type { Link, LinkAddress } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import {
  hashedPodLinkName,
  inPodBridgeName,
  isPrimaryNetwork,
  renamedPodLink,
  tapDeviceName,
} from '@virtwire/vm-model';
import type { DomainInterface, Network, Vmi, VmiInterface } from '@virtwire/vm-model';
import { goFileError } from '../disks/go-error.ts';
import { LauncherError } from '../errors.ts';
import { decideDhcp } from './dhcp-config.ts';
import type { DhcpPlan } from './dhcp-config.ts';
import { startDhcpServer } from './dhcp-server.ts';
import { startDhcp6Server } from './dhcp6-server.ts';
import { parseResolvConf } from './resolv-conf.ts';
import type { DhcpServer } from './serve.ts';

/** Settings of network phase 2. */
export interface GuestNetworkOptions {
  /** `/var/run/kubevirt-private`: the node agent's files and the markers of started servers. */
  readonly privateDir: string;
  readonly resolvConfPath: string;
  readonly hostname: string;
}

/** The outside world; the last two are replaced in tests without a pod network. */
export interface GuestNetworkDeps {
  readonly log: Logger;
  /** Told when a running server dies, which is the end of the launcher. */
  readonly onFailure: (error: Error) => void;
  readonly readLinks?: () => PodLinks;
  readonly startServers?: typeof startServers;
}

/** The pod's links and their addresses. */
export interface PodLinks {
  readonly links: readonly Link[];
  readonly addresses: readonly LinkAddress[];
}

/** Network phase 2: what the launcher adds to the pod network that the node agent has prepared. */
export interface GuestNetwork {
  /**
   * Gives the domain's interfaces MAC, MTU and tap device, and starts the DHCP servers of those that need one.
   * Interfaces that are no taps stay as they are.
   *
   * @param interfaces of the domain, as converted.
   * @param attachments domain attachment type per interface, as the handler sent it (`tap`, `managedTap`).
   * @throws {LauncherError} `NetworkFailed` when a pod link is missing or a server cannot start.
   * @source KubeVirt v1.9.0 pkg/network/setup/launcher/configurator.go:89
   */
  prepare(
    vmi: Vmi,
    interfaces: readonly DomainInterface[],
    attachments: Readonly<Record<string, string>>,
  ): Promise<DomainInterface[]>;
  /** Stops all servers. */
  close(): Promise<void>;
}

/** Attachment types that are a tap of the node agent's. */
const TAP_ATTACHMENTS = new Set(['tap', 'managedTap']);

/** @see GuestNetwork */
export function createGuestNetwork(deps: GuestNetworkDeps, options: GuestNetworkOptions): GuestNetwork {
  const servers: DhcpServer[] = [];
  const start = deps.startServers ?? startServers;

  const ensureServers = async (plan: DhcpPlan, podLink: string): Promise<void> => {
    const marker = join(options.privateDir, `dhcp_started-${podLink}`);
    if (fs.existsSync(marker)) return;
    servers.push(...(await start(plan, deps.log, deps.onFailure)));
    fs.writeFileSync(marker, '');
  };

  return {
    async prepare(vmi, interfaces, attachments) {
      if (!interfaces.some((i) => TAP_ATTACHMENTS.has(attachments[i.Alias?.Name ?? ''] ?? ''))) return [...interfaces];
      const pod = (deps.readLinks ?? readLinks)();
      const result: DomainInterface[] = [];
      for (const domainInterface of interfaces) {
        const name = domainInterface.Alias?.Name ?? '';
        const isTap = TAP_ATTACHMENTS.has(attachments[name] ?? '');
        const guest = isTap ? findGuestInterface(vmi, name, pod) : undefined;
        result.push(guest === undefined ? domainInterface : completed(domainInterface, guest, pod));
        if (guest === undefined) continue;
        const plan = plugging(guest.podLink, () => decideServers(vmi, guest, pod, options));
        if (plan.v4 !== undefined || plan.v6 !== undefined) await ensureServers(plan, guest.podLink.name);
      }
      return result;
    },
    async close() {
      await Promise.all(servers.splice(0).map((s) => s.close()));
    },
  };
}

interface GuestInterface {
  readonly iface: VmiInterface;
  readonly network: Network;
  /** The link that bears the pod's address: the pod link, or with the bridge binding the dummy in its place. */
  readonly podLink: Link;
}

function findGuestInterface(vmi: Vmi, name: string, pod: PodLinks): GuestInterface | undefined {
  const iface = vmi.spec.domain.devices.interfaces?.find((i) => i.name === name);
  const network = vmi.spec.networks?.find((n) => n.name === name);
  if (iface === undefined || network === undefined) return undefined;
  for (const candidate of podLinkNames(vmi, network)) {
    const podLink = pod.links.find((l) => l.name === candidate);
    if (podLink !== undefined) return { iface, network, podLink };
  }
  throw new LauncherError('NetworkFailed', `pod interface of network ${name} is missing`);
}

/** The name of today, then that of old releases. */
function podLinkNames(vmi: Vmi, network: Network): string[] {
  if (isPrimaryNetwork(network)) {
    const given = vmi.status?.interfaces?.find((i) => i.name === network.name)?.podInterfaceName;
    return [given === undefined || given === '' ? 'eth0' : given];
  }
  const secondary = (vmi.spec.networks ?? []).filter((n) => n.multus !== undefined && !isPrimaryNetwork(n));
  return [hashedPodLinkName(network.name), `net${secondary.findIndex((n) => n.name === network.name) + 1}`];
}

function completed(domainInterface: DomainInterface, guest: GuestInterface, pod: PodLinks): DomainInterface {
  const { iface, network, podLink } = guest;
  const tap = tapDeviceName(podLink.name, network);
  const device = pod.links.some((l) => l.name === tap) ? tap : podLink.name;
  const given = iface.macAddress ?? '';
  const hasMac = given !== '';
  return {
    ...domainInterface,
    MAC: { MAC: (hasMac ? given : podLink.mac).toLowerCase().replaceAll('-', ':') },
    MTU: { Size: String(podLink.mtu) },
    Target: { Device: device, Managed: 'no' },
  };
}

function plugging<T>(podLink: Link, decide: () => T): T {
  try {
    return decide();
  } catch (caught) {
    throw LauncherError.from(caught, 'NetworkFailed', `failed plugging phase2 at nic '${podLink.name}': `);
  }
}

function decideServers(vmi: Vmi, guest: GuestInterface, pod: PodLinks, options: GuestNetworkOptions): DhcpPlan {
  const { iface, network, podLink } = guest;
  if (iface.bridge === undefined && iface.masquerade === undefined) return {};
  const renamed = pod.links.find((l) => l.name === renamedPodLink(podLink.name));
  return decideDhcp({
    vmi,
    iface,
    network,
    podLink: podLink.name,
    phaseOneFile: iface.bridge === undefined ? undefined : readPhaseOneFile(options.privateDir, podLink.name),
    mtu: (iface.bridge === undefined ? podLink : (renamed ?? podLink)).mtu,
    bridgeMac: pod.links.find((l) => l.name === inPodBridgeName(podLink.name))?.mac ?? '',
    podAddresses: pod.addresses.filter((a) => a.linkIndex === podLink.index).map((a) => a.ip),
    resolvConf: parseResolvConf(readIfThere(options.resolvConfPath) ?? ''),
    hostname: options.hostname,
  });
}

/** Starts what a plan asks for: all of it, or nothing. */
async function startServers(
  plan: DhcpPlan,
  log: Logger,
  onFailure: (error: Error) => void,
): Promise<readonly DhcpServer[]> {
  const started: DhcpServer[] = [];
  try {
    if (plan.v4 !== undefined) started.push(await startDhcpServer(plan.v4, log, onFailure));
    if (plan.v6 !== undefined) started.push(await startDhcp6Server(plan.v6, log, onFailure));
    return started;
  } catch (caught) {
    await Promise.all(started.map((s) => s.close()));
    throw caught;
  }
}

function readLinks(): PodLinks {
  using socket = RouteSocket.open();
  return { links: socket.links(), addresses: socket.addresses() };
}

/** The node agent sees the file by the launcher's root, and failures name it so. */
function readPhaseOneFile(privateDir: string, podLink: string): string {
  const path = join('/proc/self/root', privateDir, `vif-cache-${podLink}.json`);
  try {
    return fs.readFileSync(path, 'utf8');
  } catch (caught) {
    throw goFileError(caught, 'open', path);
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return fs.readFileSync(path, 'utf8');
  } catch (caught) {
    if (errnoOf(caught) === 'ENOENT') return undefined;
    throw LauncherError.from(caught, 'NetworkFailed', `read ${path}: `);
  }
}
