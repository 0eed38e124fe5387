import { existsSync } from 'node:fs';
import { SafePath } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import type { ClusterConfig } from '../cluster-config.ts';
import { HandlerError } from '../errors.ts';
import type { EventRecorder } from '../events/recorder.ts';
import { createImageVolumePart } from './container-disk/image-volumes.ts';
import { createDevicePart } from './devices/device-part.ts';
import { createHostDisks } from './host-disk/create.ts';
import { detectIsolation } from './isolation.ts';
import { createMemlockPart } from './memlock/memlock-part.ts';
import { createNetworkPart } from './network/network-part.ts';
import { createRouterPart } from './network/router-part.ts';
import type { Isolation, NodeParts } from './parts.ts';

/** What the node-side parts are built from. */
export interface NodePartsDeps {
  readonly config: () => ClusterConfig;
  readonly events: EventRecorder;
  readonly log: Logger;
}

const SELINUX = '/sys/fs/selinux/enforce';

async function fileSize(launcher: Isolation, path: string): Promise<number> {
  using root = SafePath.openRoot(launcher.rootPath);
  using file = root.resolve(path);
  return file.stat().size;
}

/** The parts that work on this very node. */
export function createNodeParts(
  { config, events, log }: NodePartsDeps,
  options: { readonly privateDir: string; readonly ownPodIp: string | undefined },
): NodeParts {
  return {
    containerDisks: createImageVolumePart(config),
    network: createNetworkPart(
      { log },
      {
        ...options,
        bindingPlugins: () => config().bindingPlugins,
        portRanges: () => config().isGateOn('PortRangesSpec'),
      },
    ),
    routers: createRouterPart({ log }),
    devices: createDevicePart({
      hypervisorDevice: () => config().hypervisorDevice,
      useEmulation: () => config().useEmulation,
      createHostDisks: (vmi, launcher) => createHostDisks({ events, config }, vmi, launcher),
    }),
    memlock: createMemlockPart(config),
    detectIsolation,
    async selinuxContext() {
      if (!existsSync(SELINUX)) return 'none';
      throw new HandlerError('Internal', 'reading SELinux contexts is not supported yet');
    },
    fileSize,
  };
}
