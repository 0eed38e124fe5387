import { domainName, parseXmlTree, renderXmlTree, xmlChild, xmlElement } from '@virtwire/vm-model';
import type { DomainSpec, Vmi, XmlElement } from '@virtwire/vm-model';
import type { DomainPaths } from '../converter/circumstances.ts';
import { hasDedicatedCpus } from '../converter/vmi-traits.ts';
import { blockDevice, filesystemImage, hotplugPath } from '../converter/volume-paths.ts';
import { replaceChild, sortChildren } from './element-order.ts';
import { placeOnTarget, targetCpusOf } from './target-cpus.ts';
import { classifyVolumes, isPlugged, moveOf } from './volumes.ts';

const USER_ALIAS_PREFIX = 'ua-';
const BLOCK = 'Block';

/** What the description of a domain for its target is made from. */
export interface TargetXmlInput {
  readonly vmi: Vmi;
  /** libvirt's migratable description. */
  readonly migratableXml: string;
  /** The domain as it runs. */
  readonly live: DomainSpec;
  /** The target's hook sees to CPUs and paths. */
  readonly targetHasHooks: boolean;
  readonly paths: DomainPaths;
  /** Size in bytes that the guest sees of an image or block device. */
  readonly virtualSize: (path: string) => Promise<number>;
}

/** Alias of a device without libvirt's mark of a name that its user gave. */
export function userAlias(device: XmlElement): string {
  const name = xmlChild(device, 'alias')?.attributes.get('name') ?? '';
  return name.startsWith(USER_ALIAS_PREFIX) ? name.slice(USER_ALIAS_PREFIX.length) : name;
}

/** The devices of a domain that have this element. */
export function devicesOf(tree: XmlElement, name: string): readonly XmlElement[] {
  return xmlChild(tree, 'devices')?.children.filter((device) => device.name === name) ?? [];
}

/** Gives disks on files the paths that `pathOf` knows for them. */
export function setDiskFiles(tree: XmlElement, pathOf: (volume: string) => string | undefined): void {
  for (const disk of devicesOf(tree, 'disk')) {
    const source = xmlChild(disk, 'source');
    const path = pathOf(userAlias(disk));
    if (source?.attributes.has('file') === true && path !== undefined) source.attributes.set('file', path);
  }
}

/** Files of the disks as they run, in the target's namespace if that is another one. */
function livePaths({ vmi, live }: TargetXmlInput): ReadonlyMap<string, string> {
  const { namespace } = vmi.metadata;
  const asked = vmi.status?.migrationState?.targetState?.domainNamespace ?? '';
  const other = asked === '' ? namespace : asked;
  const paths = new Map<string, string>();
  for (const { Alias, Source } of live.Devices.Disks ?? []) {
    const file = Source?.File ?? '';
    if (file !== '')
      paths.set(
        Alias?.Name ?? '',
        file.replace(namespace, () => other),
      );
  }
  return paths;
}

/** A size that both sides agree on, as a volume of the target may be larger. */
function slices(bytes: number): XmlElement {
  const slice = xmlElement('slice', { type: 'storage', offset: '0', size: String(bytes) });
  return xmlElement('slices', {}, [slice]);
}

function moveSource(disk: XmlElement, source: XmlElement, to: 'file' | 'block', path: string): void {
  const rest = [...source.attributes].filter(([name]) => name !== 'file' && name !== 'dev');
  source.attributes = new Map([[to === 'file' ? 'file' : 'dev', path], ...rest]);
  disk.attributes.set('type', to);
}

async function rewriteLocalDisk(input: TargetXmlInput, disk: XmlElement): Promise<void> {
  const { vmi, paths } = input;
  const volume = userAlias(disk);
  const source = xmlChild(disk, 'source');
  const path = source?.attributes.get('file') ?? source?.attributes.get('dev');
  if (source === undefined || path === undefined) return;
  replaceChild(source, 'slices', slices(await input.virtualSize(path)));
  const move = moveOf(vmi, volume);
  const isToBlock = move?.destinationPVCInfo?.volumeMode === BLOCK;
  const isFromBlock = move?.sourcePVCInfo?.volumeMode === BLOCK;
  if (isToBlock === isFromBlock) return;
  const own = isToBlock ? blockDevice(volume) : filesystemImage(paths, volume);
  const target = isPlugged(vmi, volume) ? hotplugPath(paths, volume, isToBlock) : own;
  moveSource(disk, source, isToBlock ? 'block' : 'file', target);
}

function withTargetUid(vmi: Vmi, xml: string): string {
  const uid = vmi.status?.migrationState?.targetState?.virtualMachineInstanceUID ?? '';
  return uid === '' ? xml : xml.replaceAll(vmi.metadata.uid, () => uid);
}

/**
 * The domain as the target shall define it.
 *
 * @throws {LauncherError} `ConvertFailed` when the target's CPUs do not suffice; also what `virtualSize` throws
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go migratableDomXML
 */
export async function renderTargetXml(input: TargetXmlInput): Promise<string> {
  const { vmi, live, targetHasHooks } = input;
  const tree = parseXmlTree(input.migratableXml);
  if (!targetHasHooks) {
    const files = livePaths(input);
    setDiskFiles(tree, (volume) => files.get(volume));
    if (hasDedicatedCpus(vmi)) placeOnTarget(tree, vmi, live, targetCpusOf(vmi));
  }
  const classes = classifyVolumes(vmi);
  for (const disk of devicesOf(tree, 'disk')) {
    if (classes.get(userAlias(disk)) === 'local') await rewriteLocalDisk(input, disk);
  }
  const devices = xmlChild(tree, 'devices');
  if (devices !== undefined) sortChildren(devices);
  return withTargetUid(vmi, renderXmlTree(tree, { indent: '  ' }));
}

/** Name of the domain on its target: the one that the target asks for, if it says all of it. */
export function targetDomainName(vmi: Vmi): string {
  const target = vmi.status?.migrationState?.targetState;
  const [namespace, name] = [target?.domainNamespace ?? '', target?.domainName ?? ''];
  const isNamed = namespace !== '' && name !== '';
  return isNamed ? domainName(namespace, name) : domainName(vmi.metadata.namespace, vmi.metadata.name);
}
