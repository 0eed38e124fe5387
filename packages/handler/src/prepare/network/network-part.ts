import { objectFields } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { errorText, HandlerError } from '../../errors.ts';
import type { Vmi } from '../../model.ts';
import type { Isolation, NetworkPart, PodInterface } from '../parts.ts';
import { createNodeFiles, createPodFiles } from './files.ts';
import type { BindingPluginType } from './binding.ts';
import { openPodKernel } from './kernel.ts';
import type { NetworkPorts } from './ports.ts';
import { setUpNetwork } from './set-up.ts';
import { parseStateFile } from './state-file.ts';

/** What the network part is built from. */
export interface NetworkPartOptions {
  /** Holds `network-info-cache`. */
  readonly privateDir: string;
  /** The node agent's own address (`MY_POD_IP`): its family is named first. */
  readonly ownPodIp: string | undefined;
  /** Binding plugins of the KubeVirt object, as they are now. */
  readonly bindingPlugins: () => Readonly<Record<string, BindingPluginType>>;
  /** Feature gate PortRangesSpec. */
  readonly portRanges: () => boolean;
}

/** The outside world; `ports` is replaced by tests that have no kernel to change. */
export interface NetworkPartDeps {
  readonly log: Logger;
  readonly ports?: NetworkPorts;
}

/** Network phase 1: prepares a pod's network namespace for its VM, once, and remembers that. */
export function createNetworkPart(deps: NetworkPartDeps, options: NetworkPartOptions): NetworkPart {
  const ports = deps.ports ?? realPorts(options.privateDir);
  return {
    async setUp(vmi, networks, launcher) {
      try {
        const log = deps.log.child(objectFields(vmi));
        await setUpNetwork({ log, ports }, options, { vmi, networks, launcher });
      } catch (caught) {
        const isCritical = caught instanceof HandlerError && caught.code === 'CriticalNetwork';
        const code = isCritical ? 'CriticalNetwork' : 'Internal';
        throw new HandlerError(code, `setup failed, err: ${errorText(caught)}`, { cause: caught });
      }
    },

    async tearDown(vmi) {
      try {
        ports.nodeFiles.remove(vmi.metadata.uid);
      } catch (caught) {
        throw new HandlerError('Internal', `teardown failed, err: ${errorText(caught)}`, { cause: caught });
      }
    },

    async podInterface(vmi, interfaceName) {
      return readPodInterface(ports, vmi, interfaceName);
    },
  };
}

/** A missing or broken file counts as nothing known. */
function readPodInterface(ports: NetworkPorts, vmi: Vmi, interfaceName: string): PodInterface | undefined {
  try {
    const text = ports.nodeFiles.read(`${vmi.metadata.uid}/${interfaceName}`);
    if (text === undefined) return undefined;
    const { podIP, podIPs } = parseStateFile(text);
    return podIP === undefined ? undefined : { podIP, podIPs: podIPs ?? [podIP] };
  } catch {
    return undefined;
  }
}

function realPorts(privateDir: string): NetworkPorts {
  return {
    nodeFiles: createNodeFiles(`${privateDir}/network-info-cache`),
    podFiles: (launcher: Isolation) => createPodFiles(launcher.rootPath),
    openKernel: openPodKernel,
  };
}
