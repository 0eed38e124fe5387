import { existsSync, readFileSync } from 'node:fs';
import { hasCode, VirtwireError } from '../errors.ts';
import type { RunTool } from '../machine/run-tool.ts';

/** Where Debian and others keep the CNI plugins. */
const CNI_PATHS = ['/usr/lib/cni', '/opt/cni/bin'];

/** The network of the pods of one node. */
export interface PodNetwork {
  readonly bridge: string;
  readonly subnet: string;
  /** Where host-local keeps its leases. */
  readonly leasesDir: string;
}

/** Addresses that a pod got. */
export interface PodAddresses {
  readonly ip: string;
  readonly gateway: string;
  readonly mac: string;
}

/** Configuration of the bridge plugin. Masquerading is our own nftables table: the plugin would need iptables. */
export function renderCniConfig(network: PodNetwork): object {
  return {
    cniVersion: '0.4.0',
    name: network.bridge,
    type: 'bridge',
    bridge: network.bridge,
    isGateway: true,
    ipMasq: false,
    hairpinMode: true,
    ipam: {
      type: 'host-local',
      ranges: [[{ subnet: network.subnet }]],
      routes: [{ dst: '0.0.0.0/0' }],
      dataDir: network.leasesDir,
    },
  };
}

interface CniResult {
  readonly interfaces?: readonly { readonly name: string; readonly mac?: string; readonly sandbox?: string }[];
  readonly ips?: readonly { readonly address: string; readonly gateway?: string }[];
}

/** Reads the answer of a plugin's ADD. */
export function parseCniResult(text: string): PodAddresses {
  const result = JSON.parse(text) as CniResult;
  const address = result.ips?.[0];
  const ip = address?.address.split('/')[0];
  if (ip === undefined) throw new VirtwireError('SandboxFailed', 'the CNI bridge plugin gave the pod no address');
  const mac = result.interfaces?.find((link) => link.sandbox !== undefined && link.sandbox !== '')?.mac ?? '';
  return { ip, gateway: address?.gateway ?? '', mac };
}

interface CniCall {
  readonly containerId: string;
  readonly netnsPath: string;
  readonly configFile: string;
}

function pluginDirectory(): string {
  const directory = CNI_PATHS.find((path) => existsSync(`${path}/bridge`));
  if (directory === undefined) {
    throw new VirtwireError('MissingTool', `no CNI plugins in ${CNI_PATHS.join(' or ')}: run scripts/setup.sh`);
  }
  return directory;
}

function callBridge(run: RunTool, command: 'ADD' | 'DEL', call: CniCall, input: string): Promise<string> {
  const directory = pluginDirectory();
  return run(`${directory}/bridge`, [], {
    input,
    env: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: call.containerId,
      CNI_NETNS: call.netnsPath,
      CNI_IFNAME: 'eth0',
      CNI_PATH: directory,
    },
  });
}

/** Gives the network namespace its `eth0` with address and default route. */
export async function addPodNetwork(run: RunTool, call: CniCall): Promise<PodAddresses> {
  return parseCniResult(await callBridge(run, 'ADD', call, readFileSync(call.configFile, 'utf8')));
}

/** Takes `eth0` and its address lease back; does nothing when the configuration is gone, for then all is gone. */
export async function deletePodNetwork(run: RunTool, call: CniCall): Promise<void> {
  let config: string;
  try {
    config = readFileSync(call.configFile, 'utf8');
  } catch (caught) {
    if (hasCode(caught, 'ENOENT')) return;
    throw caught;
  }
  await callBridge(run, 'DEL', call, config);
}
