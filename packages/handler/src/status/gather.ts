import { unwrap } from '@virtwire/shared-proto';
import { withDocuments } from '@virtwire/shared-proto/documents';
import type { Logger } from '@virtwire/telemetry';
import { errorText, hasErrorCode } from '../errors.ts';
import type { Launchers } from '../launchers/launchers.ts';
import { phaseOf } from '../model.ts';
import type { Domain, Vmi } from '../model.ts';
import type { Isolation, NodeParts, PodInterface } from '../prepare/parts.ts';
import { needsGuestInfo } from './compute.ts';
import type { NodeFacts } from './facts.ts';
import type { GuestAgentInfo } from './guest-agent.ts';
import { isoPaths } from './iso-paths.ts';
import type { PodInterfaceCache } from './pod-interface-cache.ts';

/** What gathering the facts of a status needs. */
export interface GatherDeps {
  readonly parts: NodeParts;
  readonly launchers: Launchers;
  readonly podInterfaces: PodInterfaceCache;
  readonly host: { readonly cpuModel: string; readonly architecture: string };
}

/** The VMI, its domain, and what the pass has found out already. */
export interface GatherInput {
  readonly vmi: Vmi;
  readonly domain: Domain | undefined;
  readonly isolation: Isolation | undefined;
  readonly log: Logger;
}

async function isoSizes(deps: GatherDeps, { vmi, log, isolation }: GatherInput): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  const known = new Set((vmi.status?.volumeStatus ?? []).map((status) => status.name));
  const paths = [...isoPaths(vmi)].filter(([name]) => known.has(name));
  if (phaseOf(vmi) !== 'Running' || paths.length === 0) return sizes;
  const socketFile = deps.launchers.info(vmi.metadata.uid)?.socketFile;
  for (const [name, path] of paths) {
    try {
      const launcher = isolation ?? (await deps.parts.detectIsolation(socketFile ?? ''));
      sizes.set(name, await deps.parts.fileSize(launcher, path));
    } catch (error) {
      log.warn({ reason: errorText(error) }, `failed to determine file size for volume ${path}`);
    }
  }
  return sizes;
}

async function selinuxContext({ parts }: GatherDeps, { vmi, log }: GatherInput): Promise<string | undefined> {
  try {
    return await parts.selinuxContext(vmi);
  } catch (error) {
    log.error({ reason: errorText(error) }, `couldn't find the SELinux context for ${vmi.metadata.name}`);
    return undefined;
  }
}

function hasTarget(domain: Domain | undefined, volume: string): boolean {
  return (domain?.Spec.Devices.Disks ?? []).some(
    (disk) =>
      (disk.Alias?.Name ?? '').replace(/^ua-/, '') === volume &&
      (Boolean(disk.Source?.File) || Boolean(disk.Source?.Dev)) &&
      Boolean(disk.Target?.Device),
  );
}

async function mountedVolumes({ parts }: GatherDeps, { vmi, domain, log }: GatherInput): Promise<Set<string>> {
  const mounted = new Set<string>();
  for (const status of vmi.status?.volumeStatus ?? []) {
    if (status.hotplugVolume === undefined || hasTarget(domain, status.name)) continue;
    try {
      if ((await parts.hotplug?.isMounted(vmi, status.name)) === true) mounted.add(status.name);
    } catch (error) {
      log.error({ reason: errorText(error) }, `error occurred while checking if volume ${status.name} is mounted`);
    }
  }
  return mounted;
}

async function podInterfaces(deps: GatherDeps, { vmi, domain }: GatherInput): Promise<Map<string, PodInterface>> {
  const found = new Map<string, PodInterface>();
  if (domain === undefined) return found;
  for (const { name } of vmi.spec.domain.devices.interfaces ?? []) {
    const pod = await deps.podInterfaces.get(vmi, name);
    if (pod !== undefined) found.set(name, pod);
  }
  return found;
}

/** Asks the agent about itself; a launcher that cannot be asked that leaves the answer out (FM-1.5). */
async function guestAgent({ launchers }: GatherDeps, input: GatherInput): Promise<GuestAgentInfo | undefined> {
  if (!needsGuestInfo(input)) return undefined;
  const client = await launchers.get(input.vmi);
  try {
    const { guestInfoResponse = {} } = unwrap(await withDocuments(client).getGuestInfo());
    return guestInfoResponse;
  } catch (error) {
    if (hasErrorCode(error, 'Unimplemented')) return undefined;
    throw error;
  }
}

/**
 * Collects what only the node and the guest can tell about a VMI.
 *
 * @throws when the guest agent is there and cannot be asked; nothing is written then.
 */
export async function gatherFacts(deps: GatherDeps, input: GatherInput): Promise<NodeFacts> {
  return {
    isoSizes: await isoSizes(deps, input),
    selinuxContext: await selinuxContext(deps, input),
    mountedVolumes: await mountedVolumes(deps, input),
    podInterfaces: await podInterfaces(deps, input),
    guestAgent: await guestAgent(deps, input),
    hostCpuModel: deps.host.cpuModel,
    hostArchitecture: deps.host.architecture,
  };
}
