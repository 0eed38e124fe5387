import { parseXmlTree } from '@virtwire/vm-model';
import type { XmlElement } from '@virtwire/vm-model';
import type { TraceEntry } from './vector-types.ts';

/** libvirt calls that change something; the others may be fewer or in another order. */
const CHANGES: ReadonlySet<unknown> = new Set([
  ...['DomainDefineXML', 'CreateWithFlags', 'Suspend', 'Resume', 'ShutdownFlags', 'DestroyFlags', 'UndefineFlags'],
  ...['Reset', 'Reboot', 'FSFreeze', 'FSThaw', 'CoreDumpWithFormat', 'StartDirtyRateCalc', 'SetLaunchSecurityState'],
  ...['SetTime', 'AttachDeviceFlags', 'DetachDeviceFlags', 'UpdateDeviceFlags', 'BlockResize'],
  ...['BackupBegin', 'AbortJob', 'CreateCheckpointXML'],
  ...['MigrateToURI3', 'MigrateStartPostCopy', 'MigrateSetMaxDowntime'],
  ...['SetVcpusFlags', 'PinVcpuFlags', 'PinEmulator'],
]);

/** Each retry may start some milliseconds later than the recorded one, whose timer did not wait for the last. */
const TICK_MS = 100;

function flagsOf(entry: TraceEntry): unknown {
  const flags = entry['flags'];
  return typeof flags === 'object' && flags !== null && 'value' in flags ? flags.value : flags;
}

/** KubeVirt passes devices in lower case, with records of its own that libvirt skips. */
function deviceXml({ libvirt, xml }: TraceEntry): unknown {
  if (typeof xml !== 'string' || !/^(?:Attach|Detach|Update)Device/.test(String(libvirt))) return xml;
  return xml
    .toLowerCase()
    .replaceAll(/<(filesystemoverhead|capacity)>[^<]*<\/\1>/g, '')
    .replaceAll('<current unit="">0</current>', '');
}

/** An element as it counts: attributes in any order, children in theirs. */
function comparableElement({ name, attributes, children, text }: XmlElement): unknown {
  const sorted = [...attributes].sort(([a], [b]) => (a < b ? -1 : 1));
  return { name, attributes: sorted, text, children: children.map(comparableElement) };
}

/** Parameters of a migration: the same domain for now and for later counts once. */
function comparableMigration(entry: TraceEntry): unknown {
  const {
    destination_xml: xml,
    persistent_xml: later,
    bandwidth,
    ...rest
  } = (entry['params'] ?? {}) as Readonly<Record<string, unknown>>;
  const isSame = later === xml || later === '<same as destination_xml>';
  return {
    uri: entry['uri'],
    params: { ...rest, bandwidth: bandwidth === undefined ? undefined : Number(bandwidth) },
    domain: comparableElement(parseXmlTree(String(xml))),
    later: isSame ? 'same' : later,
  };
}

function normalise(entry: TraceEntry, at: number): unknown {
  if (entry['notify'] === 'connect') return { at, connect: entry['error'] === undefined ? 'ok' : 'failed' };
  if (entry['notify'] !== undefined) {
    const { notify, eventType, domainJSON, eventJSON } = entry;
    return { at, notify, eventType, domainJSON, eventJSON };
  }
  if (entry['agent'] !== undefined) return { at, agent: entry['agent'], command: entry['command'] };
  if (entry['libvirt'] === 'BackupBegin') {
    const { backupXml, checkpointXml } = entry;
    return { at, flags: flagsOf(entry), backupXml, checkpointXml };
  }
  if (entry['libvirt'] === 'MigrateToURI3')
    return { at, flags: flagsOf(entry), ...(comparableMigration(entry) as object) };
  const { libvirt, downtimeMs, to, disk, size, vcpus, vcpu, cpus } = entry;
  return { at, libvirt, flags: flagsOf(entry), xml: deviceXml(entry), downtimeMs, to, disk, size, vcpus, vcpu, cpus };
}

/** Whether an entry must be the same in the same place. */
export function isBinding(entry: TraceEntry): boolean {
  return entry['notify'] !== undefined || entry['agent'] !== undefined || CHANGES.has(entry['libvirt']);
}

/** What is binding in a recorded trace and in a played one, in comparable form: times that are close are the same. */
export function bindingTraces(
  expected: readonly TraceEntry[],
  actual: readonly TraceEntry[],
): { readonly expected: readonly unknown[]; readonly actual: readonly unknown[] } {
  const recorded = expected.filter(isBinding);
  const played = actual.filter(isBinding);
  return {
    expected: recorded.map((entry) => normalise(entry, entry.at ?? 0)),
    actual: played.map((entry, i) => {
      const [at, recordedAt] = [entry.at ?? 0, recorded[i]?.at ?? 0];
      return normalise(entry, Math.abs(at - recordedAt) <= TICK_MS ? recordedAt : at);
    }),
  };
}
