import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import type { Vmi } from '@virtwire/vm-model';
import { circumstancesFromJson } from '../converter/circumstances-json.ts';
import { readNetworkInfo } from '../converter/network-info.ts';
import { createTargetPreparation } from '../disks/target-preparation.ts';
import { createVmiPreparation } from '../disks/vmi-preparation.ts';
import type { VmiPreparationConfig, VmiPreparationDeps } from '../disks/vmi-preparation.ts';
import { createGuestNetwork } from '../network/guest-network.ts';
import type { PodLinks } from '../network/guest-network.ts';
import type { DiskWorld, DiskWorldSetup } from './disk-world.ts';
import type { VectorPreparation } from './run-vector.ts';
import type { VectorInput } from './vector-types.ts';

/** `input.json` of a launcher case that prepares a VM. */
export type PreparedInput = VectorInput &
  DiskWorldSetup & {
    readonly config?: {
      readonly imageVolume?: boolean;
      readonly directIO?: boolean;
      readonly allowEmulation?: boolean;
      readonly podCPUSet?: readonly number[];
      readonly podCPUSetError?: string;
    };
    readonly noHypervisorDevice?: boolean;
    /** Content of the pod's network-info. */
    readonly networkInfo?: string;
    readonly links?: readonly { readonly name: string; readonly mac?: string; readonly mtu?: number }[];
  };

const NETWORK_INFO = '/etc/podinfo/network-info';

function podCpuSetOf({ config = {} }: PreparedInput): Promise<readonly number[]> {
  const { podCPUSet = [0, 1, 2, 3], podCPUSetError } = config;
  return podCPUSetError === undefined ? Promise.resolve(podCPUSet) : Promise.reject(new Error(podCPUSetError));
}

/** The clock of a case does not wait for files that are read in the background. */
const readAtOnce = async (path: string): Promise<string> => readFileSync(path, 'utf8');

/** The links that every case has. */
const LINKS: PodLinks = {
  links: [
    { index: 2, name: 'eth0', mac: '02:00:00:aa:bb:01', mtu: 1450 },
    { index: 3, name: 'tap0', mac: '02:00:00:aa:bb:02', mtu: 1450 },
  ] as unknown as PodLinks['links'],
  addresses: [],
};

function linksOf({ links = [] }: PreparedInput): PodLinks {
  const others = links.map(({ name, mac = '', mtu = 1500 }, i) => ({ index: 4 + i, name, mac, mtu }));
  return { ...LINKS, links: [...LINKS.links, ...(others as unknown as PodLinks['links'])] };
}

/** The launcher's own preparation in a case's file system, with recorded tools and the links of the recording. */
export function createVectorPreparation(world: DiskWorld, input: PreparedInput): VectorPreparation {
  const { hostArchitecture, hypervisor, environment } = circumstancesFromJson(
    input.vmi as unknown as Vmi,
    {},
    undefined,
  );
  mkdirSync(world.deps.paths.privateDir, { recursive: true });
  if (input.networkInfo !== undefined) {
    const file = join(world.root, NETWORK_INFO);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, input.networkInfo);
  }
  const network = createGuestNetwork(
    {
      log: createLogger('virt-launcher', { destination: { write: () => undefined } }),
      onFailure: () => undefined,
      readLinks: () => linksOf(input),
      startServers: () => Promise.resolve([]),
    },
    { privateDir: world.deps.paths.privateDir, resolvConfPath: '/etc/resolv.conf', hostname: 'vm' },
  );
  const deps: VmiPreparationDeps = {
    ...world.deps,
    readPodCpuSet: () => podCpuSetOf(input),
    isBlockDevice: (path) => Promise.resolve(input.files?.[world.inPod(path)]?.block === true),
    readNetworkInfo: () => readNetworkInfo(join(world.root, NETWORK_INFO), 0, readAtOnce),
    async prepareNetwork(vmi, spec, options) {
      const attachments = options?.interfaceDomainAttachment ?? {};
      const Interfaces = await network.prepare(vmi, spec.Devices.Interfaces ?? [], attachments);
      return { ...spec, Devices: { ...spec.Devices, Interfaces } };
    },
  };
  const config: VmiPreparationConfig = {
    allowEmulation: input.config?.allowEmulation ?? true,
    usesImageVolumes: input.config?.imageVolume ?? false,
    facts: {
      hostArchitecture,
      hypervisor,
      environment,
      hypervisorDeviceAvailable: input.noHypervisorDevice !== true,
      allowCrossArchEmulation: false,
      firmwareAutoSelection: false,
      firmwareDir: '',
      logVerbosity: 2,
      paths: world.deps.paths,
      hasLibvirtHookServer: input.config?.libvirtHookServerAndClient ?? false,
    },
  };
  return { ...createVmiPreparation(deps, config), ...createTargetPreparation(deps, config) };
}
