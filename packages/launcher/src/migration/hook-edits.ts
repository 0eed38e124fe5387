import {
  hashedPodLinkName,
  isPrimaryNetwork,
  parseDomainXml,
  parseXmlTree,
  renderXmlTree,
  tapDeviceName,
  xmlChild,
} from '@virtwire/vm-model';
import type { DomainSpec, Vmi, XmlElement } from '@virtwire/vm-model';
import { hasDedicatedCpus } from '../converter/vmi-traits.ts';
import { sortChildren } from './element-order.ts';
import type { TargetCpus } from './target-cpus.ts';
import { placeOnTarget } from './target-cpus.ts';
import { devicesOf, setDiskFiles, userAlias } from './target-xml.ts';

const ORDINAL_TAP = /^tap\d+$/;

/** What an incoming domain is adapted to. */
export interface IncomingTarget {
  readonly vmi: Vmi;
  /** The domain that this pod would have defined. */
  readonly wanted: DomainSpec;
  /** CPUs of this pod. */
  readonly cpus: TargetCpus;
  /** Taps named by their order get the names that pods give now. */
  readonly renamesTaps: boolean;
  /** A virtual GPU of this node takes the place of the source's. */
  readonly replacesVgpu: boolean;
}

function renameTaps(tree: XmlElement, vmi: Vmi): void {
  const networks = new Map((vmi.spec.networks ?? []).map((network) => [network.name, network]));
  for (const nic of devicesOf(tree, 'interface')) {
    const network = networks.get(userAlias(nic));
    const target = xmlChild(nic, 'target');
    const isOrdinal = ORDINAL_TAP.test(target?.attributes.get('dev') ?? '');
    if (network === undefined || target === undefined || !isOrdinal || isPrimaryNetwork(network)) continue;
    target.attributes.set('dev', tapDeviceName(hashedPodLinkName(network.name), network));
  }
}

function replaceVgpu(tree: XmlElement, wanted: DomainSpec): void {
  const uuid = (wanted.Devices.HostDevices ?? []).find(({ Type }) => Type === 'mdev')?.Source?.Address?.UUID;
  const incoming = devicesOf(tree, 'hostdev').find(({ attributes }) => attributes.get('type') === 'mdev');
  const address = xmlChild(incoming === undefined ? undefined : xmlChild(incoming, 'source'), 'address');
  if (uuid !== undefined && address !== undefined) address.attributes.set('uuid', uuid);
}

/**
 * Adapts the description of an incoming domain to this pod. Pure.
 *
 * @throws {LauncherError} `ConvertFailed` when the pod's CPUs do not suffice
 * @source KubeVirt v1.9.0 pkg/virt-launcher/premigration-hook-server
 */
export function adaptIncoming(xml: string, target: IncomingTarget): string {
  const { vmi, wanted, cpus } = target;
  const tree = parseXmlTree(xml);
  if (hasDedicatedCpus(vmi)) placeOnTarget(tree, vmi, parseDomainXml(xml), cpus);
  const files = new Map((wanted.Devices.Disks ?? []).map(({ Alias, Source }) => [Alias?.Name ?? '', Source?.File]));
  setDiskFiles(tree, (volume) => files.get(volume));
  if (target.renamesTaps) renameTaps(tree, vmi);
  if (target.replacesVgpu) replaceVgpu(tree, wanted);
  const devices = xmlChild(tree, 'devices');
  if (devices !== undefined) sortChildren(devices);
  return renderXmlTree(tree, { indent: '  ' });
}
