import {
  DomainMemoryStatTags,
  DomainMetadataType,
  DomainStatsTypes,
  DomainVcpuFlags,
  DomainXMLFlags,
  ErrorDomain,
  ErrorNumber,
} from '../../gen/constants.gen.ts';
import type { DomainStatsRecord } from '../../gen/types.gen.ts';
import { typedParams } from '../../typed-params.ts';
import type { TypedParam } from '../../typed-params.ts';
import type { FakeDomain } from '../domain.ts';
import { daemonError, invalidState } from '../errors.ts';
import { child, childrenOf, childText, parseXml, renderXml, setChildText } from '../xml.ts';
import type { XmlElement } from '../xml.ts';
import { domainOf } from './context.ts';
import type { CallHandlers } from './context.ts';

const UNITS: Readonly<Record<string, bigint>> = {
  b: 1n,
  bytes: 1n,
  KB: 1_000n,
  k: 1n << 10n,
  KiB: 1n << 10n,
  MB: 1_000_000n,
  M: 1n << 20n,
  MiB: 1n << 20n,
  GB: 1_000_000_000n,
  G: 1n << 30n,
  GiB: 1n << 30n,
};

/** State, description, statistics, metadata, CPU. */
export const infoCalls: CallHandlers = {
  DOMAIN_GET_STATE: (args, context) => {
    const { state, reason } = domainOf(args, context);
    return { state, reason };
  },
  DOMAIN_GET_INFO: (args, context) => {
    const domain = domainOf(args, context);
    const memory = memoryKiB(domain.current);
    return { state: domain.state, maxMem: memory, memory, nrVirtCpu: vcpus(domain.current), cpuTime: cpuTime(domain) };
  },
  DOMAIN_GET_XML_DESC: (args, context) => {
    return { xml: domainOf(args, context).describe((args.flags & DomainXMLFlags.INACTIVE) !== 0) };
  },
  DOMAIN_IS_ACTIVE: (args, context) => ({ active: domainOf(args, context).isActive ? 1 : 0 }),
  DOMAIN_IS_PERSISTENT: (args, context) => ({ persistent: domainOf(args, context).isPersistent ? 1 : 0 }),
  DOMAIN_GET_AUTOSTART: (args, context) => ({ autostart: domainOf(args, context).isAutostarted ? 1 : 0 }),
  DOMAIN_SET_AUTOSTART: (args, context) => {
    const domain = domainOf(args, context);
    if (!domain.isPersistent) throw invalidState('cannot set autostart for transient domain');
    domain.isAutostarted = args.autostart !== 0;
  },
  DOMAIN_GET_CONTROL_INFO: (args, context) => {
    domainOf(args, context).assertActive();
    return { state: 0, details: 0, stateTime: 0n };
  },
  DOMAIN_GET_MESSAGES: (args, context) => ({ msgs: domainOf(args, context).messages }),
  DOMAIN_MEMORY_STATS: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    const balloon = domain.stats.get('balloon.current');
    const all = [
      {
        tag: DomainMemoryStatTags.ACTUAL_BALLOON,
        val: typeof balloon === 'bigint' ? balloon : memoryKiB(domain.current),
      },
      { tag: DomainMemoryStatTags.LAST_UPDATE, val: 0n },
      { tag: DomainMemoryStatTags.RSS, val: memoryKiB(domain.current) / 2n },
    ];
    return { stats: all.slice(0, args.maxStats) };
  },
  CONNECT_GET_ALL_DOMAIN_STATS: ({ doms, stats }, { hypervisor }) => {
    const domains = doms.length === 0 ? hypervisor.domains : doms.map((dom) => hypervisor.byRef(dom));
    return { retStats: domains.map((domain) => statsOf(domain, stats)) };
  },
  DOMAIN_GET_METADATA: (args, context) => ({
    metadata: readMetadata(domainOf(args, context).current, args.type, args.uri),
  }),
  DOMAIN_SET_METADATA: (args, context) => {
    const domain = domainOf(args, context);
    for (const description of new Set([domain.definition, domain.current])) writeMetadata(description, args);
    domain.host.emit('metadataChange', domain, { type: args.type, nsuri: args.uri });
  },
  DOMAIN_GET_VCPU_PIN_INFO: (args, context) => {
    const count = Math.min(args.ncpumaps, vcpus(domainOf(args, context).current));
    const all = (1 << Math.min(context.hypervisor.facts.cpus, 8)) - 1;
    const cpumaps = new Uint8Array(count * args.maplen);
    for (let vcpu = 0; vcpu < count; vcpu++) cpumaps[vcpu * args.maplen] = all;
    return { cpumaps, num: count };
  },
  DOMAIN_PIN_VCPU_FLAGS: (args, context) => domainOf(args, context).assertActive(),
  DOMAIN_PIN_EMULATOR: (args, context) => domainOf(args, context).assertActive(),
  DOMAIN_SET_VCPUS_FLAGS: (args, context) => {
    const domain = domainOf(args, context);
    const isConfig = (args.flags & DomainVcpuFlags.CONFIG) !== 0;
    const isLive = (args.flags & DomainVcpuFlags.LIVE) !== 0 || !isConfig;
    if (isLive) domain.assertActive();
    const targets = [...(isConfig ? [domain.definition] : []), ...(isLive ? [domain.current] : [])];
    for (const description of targets) {
      const vcpu = child(description, 'vcpu');
      if (vcpu !== undefined) vcpu.attributes['current'] = String(args.nvcpus);
    }
  },
  DOMAIN_SET_MEMORY_FLAGS: (args, context) => {
    const domain = domainOf(args, context);
    setChildText(domain.current, 'currentMemory', String(args.memory), { unit: 'KiB' });
    if (domain.isActive) domain.host.emit('balloonChange', domain, { actual: args.memory });
  },
  DOMAIN_START_DIRTY_RATE_CALC: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    domain.stats.set('dirtyrate.calc_status', 2);
    if (!domain.stats.has('dirtyrate.megabytes_per_second')) domain.stats.set('dirtyrate.megabytes_per_second', 0n);
  },
  DOMAIN_SET_TIME: (args, context) => void domainOf(args, context).askAgent({ execute: 'guest-set-time' }),
};

/** Memory of a domain in KiB, in whatever unit its XML has. */
function memoryKiB(description: XmlElement): bigint {
  const memory = child(description, 'memory');
  const unit = UNITS[memory?.attributes['unit'] ?? 'KiB'] ?? 1_024n;
  return (BigInt(childText(description, 'memory') ?? '0') * unit) / 1_024n;
}

function vcpus(description: XmlElement): number {
  return Number(child(description, 'vcpu')?.attributes['current'] ?? childText(description, 'vcpu') ?? '1');
}

function cpuTime(domain: FakeDomain): bigint {
  const known = domain.stats.get('cpu.time');
  return typeof known === 'bigint' ? known : domain.isActive ? 1_000_000n : 0n;
}

function statsOf(domain: FakeDomain, groups: number): DomainStatsRecord {
  const wants = (group: number): boolean => groups === 0 || (groups & group) !== 0;
  const basic: Record<string, number | bigint | boolean | string> = {};
  if (wants(DomainStatsTypes.STATE))
    Object.assign(basic, { 'state.state': domain.state, 'state.reason': domain.reason });
  if (domain.isActive && wants(DomainStatsTypes.CPU_TOTAL)) basic['cpu.time'] = cpuTime(domain);
  if (wants(DomainStatsTypes.BALLOON)) {
    const memory = memoryKiB(domain.current);
    Object.assign(basic, { 'balloon.current': memory, 'balloon.maximum': memory });
  }
  if (wants(DomainStatsTypes.VCPU))
    Object.assign(basic, { 'vcpu.current': vcpus(domain.current), 'vcpu.maximum': vcpus(domain.current) });
  if (domain.isActive && wants(DomainStatsTypes.INTERFACE)) Object.assign(basic, interfaceStats(domain));
  if (wants(DomainStatsTypes.BLOCK)) Object.assign(basic, blockStats(domain));
  const more = [...domain.stats].filter(([name]) => wants(groupOf(name)));
  return { dom: domain.ref, params: typedParamsOf({ ...basic, ...Object.fromEntries(more) }) };
}

function groupOf(name: string): number {
  const groups: readonly (readonly [string, number])[] = [
    ['state.', DomainStatsTypes.STATE],
    ['cpu.', DomainStatsTypes.CPU_TOTAL],
    ['balloon.', DomainStatsTypes.BALLOON],
    ['vcpu.', DomainStatsTypes.VCPU],
    ['net.', DomainStatsTypes.INTERFACE],
    ['block.', DomainStatsTypes.BLOCK],
    ['dirtyrate.', DomainStatsTypes.DIRTYRATE],
  ];
  return groups.find(([prefix]) => name.startsWith(prefix))?.[1] ?? DomainStatsTypes.VM;
}

function interfaceStats(domain: FakeDomain): Record<string, number | string> {
  const interfaces = childrenOf(child(domain.current, 'devices'), 'interface');
  const out: Record<string, number | string> = { 'net.count': interfaces.length };
  for (const [i, one] of interfaces.entries()) {
    out[`net.${String(i)}.name`] = child(one, 'target')?.attributes['dev'] ?? `vnet${String(i)}`;
  }
  return out;
}

function blockStats(domain: FakeDomain): Record<string, number | string> {
  const disks = childrenOf(child(domain.current, 'devices'), 'disk');
  const out: Record<string, number | string> = { 'block.count': disks.length };
  for (const [i, disk] of disks.entries()) {
    out[`block.${String(i)}.name`] = child(disk, 'target')?.attributes['dev'] ?? '';
    const path = child(disk, 'source')?.attributes['file'] ?? child(disk, 'source')?.attributes['dev'];
    if (path !== undefined) out[`block.${String(i)}.path`] = path;
  }
  return out;
}

function typedParamsOf(values: Readonly<Record<string, number | bigint | boolean | string>>): TypedParam[] {
  // Composed names such as block.count are unsigned on the wire.
  return typedParams(values).map((param) =>
    param.type === 'int' && /count$|current$|maximum$/.test(param.field) ? { ...param, type: 'uint' } : param,
  );
}

function readMetadata(description: XmlElement, type: number, uri: string | null): string {
  const missing = (): never => {
    const text = 'metadata not found: Requested metadata element is not present';
    throw daemonError(ErrorNumber.NO_DOMAIN_METADATA, ErrorDomain.DOMAIN, text);
  };
  if (type === DomainMetadataType.DESCRIPTION) return childText(description, 'description') ?? missing();
  if (type === DomainMetadataType.TITLE) return childText(description, 'title') ?? missing();
  const found = metadataElement(description, uri);
  if (found === undefined) return missing();
  // The daemon hands the element out without the prefix that it has inside the domain.
  return renderXml(withoutPrefix(found), '', '"').trimEnd();
}

function withoutPrefix(element: XmlElement): XmlElement {
  const prefix = /^([\w.-]+):/.exec(element.name)?.[1];
  if (prefix === undefined) return element;
  const attributes = Object.fromEntries(
    Object.entries(element.attributes).filter(([name]) => name !== `xmlns:${prefix}`),
  );
  return { ...element, name: element.name.slice(prefix.length + 1), attributes };
}

function metadataElement(description: XmlElement, uri: string | null): XmlElement | undefined {
  return childrenOf(child(description, 'metadata')).find((element) => {
    const prefix = /^([\w.-]+):/.exec(element.name)?.[1];
    return element.attributes[prefix === undefined ? 'xmlns' : `xmlns:${prefix}`] === uri;
  });
}

function writeMetadata(
  description: XmlElement,
  change: {
    readonly type: number;
    readonly metadata: string | null;
    readonly key: string | null;
    readonly uri: string | null;
  },
): void {
  const { type, metadata, key, uri } = change;
  if (type !== DomainMetadataType.ELEMENT) {
    const name = type === DomainMetadataType.TITLE ? 'title' : 'description';
    description.children = description.children.filter((one) => typeof one === 'string' || one.name !== name);
    if (metadata !== null) setChildText(description, name, metadata);
    return;
  }
  const old = metadataElement(description, uri);
  let parent = child(description, 'metadata');
  if (parent === undefined) description.children.push((parent = { name: 'metadata', attributes: {}, children: [] }));
  parent.children = parent.children.filter((one) => one !== old);
  if (metadata === null) return;
  const element = parseXml(metadata);
  parent.children.push({
    name: `${key ?? ''}:${element.name}`,
    attributes: { [`xmlns:${key ?? ''}`]: uri ?? '', ...element.attributes },
    children: element.children,
  });
}
