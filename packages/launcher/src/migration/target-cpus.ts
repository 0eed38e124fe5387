import { emptyDomain, parseXmlTree, renderDomainXml, xmlChild, xmlElement } from '@virtwire/vm-model';
import type { Domain, DomainSpec, Vmi, XmlElement } from '@virtwire/vm-model';
import { nodeTopology } from '@virtwire/vm-model/payloads';
import type { HostTopology } from '../converter/circumstances.ts';
import { guestTopology, vcpuCount } from '../converter/cpu.ts';
import { placeDedicatedCpus } from '../converter/dedicated-cpus.ts';
import { replaceChild, sortChildren } from './element-order.ts';

/** CPUs of the target that the guest may use. */
export interface TargetCpus {
  readonly cpuSet: readonly number[];
  readonly topology: HostTopology;
}

/** The target's CPUs as its handler wrote them into the VMI's status. */
export function targetCpusOf(vmi: Vmi): TargetCpus {
  const { targetCPUSet = [], targetNodeTopology = '' } = vmi.status?.migrationState ?? {};
  const cells = targetNodeTopology === '' ? [] : nodeTopology.parse(targetNodeTopology).numa_cells;
  const numaCells = (cells ?? []).map((cell) => ({
    id: Number(cell.id),
    cpus: (cell.cpus ?? []).map((cpu) => ({ id: Number(cpu.id), siblings: (cpu.siblings ?? []).map(Number) })),
  }));
  return { cpuSet: targetCPUSet, topology: { numaCells } };
}

function placed(vmi: Vmi, live: DomainSpec, { cpuSet, topology }: TargetCpus): DomainSpec {
  const { maxSockets } = vmi.spec.domain.cpu ?? {};
  const own = guestTopology(vmi);
  const guest = { ...own, sockets: maxSockets === undefined || maxSockets === 0 ? own.sockets : maxSockets };
  const domain: Domain = { ...emptyDomain(), Spec: { ...live, Features: { ...live.Features } } };
  domain.Spec.CPU = {
    ...live.CPU,
    Topology: { Sockets: guest.sockets, Cores: guest.cores, Threads: guest.threads },
  };
  domain.Spec.VCPU = { Placement: 'static', CPUs: vcpuCount(guest) };
  const options = {
    MemBalloonStatsPeriod: 0,
    PreallocatedVolumes: [],
    topology,
    interfaceDomainAttachment: {},
    GraceHostDeviceAliases: [],
  };
  placeDedicatedCpus(vmi, { circumstances: { podCpuSet: cpuSet, options } }, domain);
  return domain.Spec;
}

function mergeFeature(
  features: XmlElement,
  path: readonly [string, string] | readonly [string],
  from: XmlElement,
): void {
  const [name, inner] = path;
  const wanted = xmlChild(from, name);
  if (wanted === undefined) return;
  const own = xmlChild(features, name);
  const detail = inner === undefined ? undefined : xmlChild(wanted, inner);
  if (own === undefined || inner === undefined) replaceChild(features, name, wanted);
  else replaceChild(own, inner, detail);
}

/**
 * Pins a domain to CPUs of the target: topology, number and pins of the vCPUs, NUMA placement, and the features that
 * belong to CPUs of a guest's own.
 *
 * @throws {LauncherError} `ConvertFailed` when the target's CPUs do not suffice
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go generateDomainForTargetCPUSetAndTopology
 */
export function placeOnTarget(tree: XmlElement, vmi: Vmi, live: DomainSpec, cpus: TargetCpus): void {
  const rendered = parseXmlTree(renderDomainXml(placed(vmi, live, cpus)));
  // How many of the vCPUs are plugged in is no business of the target.
  const current = xmlChild(tree, 'vcpu')?.attributes.get('current');
  if (current !== undefined) xmlChild(rendered, 'vcpu')?.attributes.set('current', current);
  for (const name of ['vcpu', 'cputune', 'numatune']) replaceChild(tree, name, xmlChild(rendered, name));
  const tune = xmlChild(tree, 'cputune');
  if (tune !== undefined) sortChildren(tune);
  const cpu = xmlChild(tree, 'cpu') ?? xmlElement('cpu');
  replaceChild(cpu, 'topology', xmlChild(xmlChild(rendered, 'cpu'), 'topology'));
  replaceChild(tree, 'cpu', cpu);
  const features = xmlChild(rendered, 'features');
  if (features === undefined) return;
  const own = xmlChild(tree, 'features') ?? xmlElement('features');
  mergeFeature(own, ['kvm', 'hint-dedicated'], features);
  mergeFeature(own, ['pmu'], features);
  replaceChild(tree, 'features', own);
}
