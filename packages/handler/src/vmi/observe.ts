import type { Logger } from '@virtwire/telemetry';
import { askDomain } from '../domain-watch/ask.ts';
import type { DomainStore } from '../domain-watch/domain-store.ts';
import { errorText } from '../errors.ts';
import type { GhostRecords } from '../ghost-records/ghost-records.ts';
import { ownerOf } from '../launchers/launcher.ts';
import type { Launchers } from '../launchers/launchers.ts';
import { phaseOf } from '../model.ts';
import type { Vmi } from '../model.ts';
import type { VmiSource } from '../vmi-source/source.ts';
import { isStranger, vmiReference } from './decide.ts';
import type { Expectations } from './expectations.ts';
import type { ClusterFacts, DomainFact, Observed } from './observed.ts';

/** Where the facts of a pass come from. */
export interface ObserveDeps {
  readonly source: Pick<VmiSource, 'get' | 'getAnywhere'>;
  readonly domains: DomainStore;
  readonly records: GhostRecords;
  readonly launchers: Launchers;
  readonly expectations: Expectations;
  readonly cluster: () => ClusterFacts;
  readonly nodeName: string;
  readonly now: () => number;
  readonly log: Logger;
}

/**
 * Asks the launcher of a VMI for which nothing is known (FM-3.4, FM-3.5): an empty cache says nothing about a VM.
 */
async function askLauncher({ launchers, domains, log }: ObserveDeps, key: string, vmi: Vmi): Promise<DomainFact> {
  const state = launchers.state(vmi);
  if (state === 'unresponsive') return { state: 'absent', uid: '' };
  if (state === 'not-initialized') {
    return phaseOf(vmi) === 'Running' ? { state: 'unknown', uid: '' } : { state: 'absent', uid: '' };
  }
  try {
    const domain = await askDomain(await launchers.get(vmi), ownerOf(vmi));
    if (domain === undefined) domains.noteAbsent(key);
    else domains.upsert(domain);
    return domains.fact(key);
  } catch (error) {
    log.warn({ reason: errorText(error) }, `cannot ask the launcher of ${key} for its domain`);
    return { state: 'unknown', uid: '' };
  }
}

async function domainFact(deps: ObserveDeps, key: string, vmi: Vmi | undefined): Promise<DomainFact> {
  const { domains, records } = deps;
  const fact = domains.fact(key);
  if (vmi === undefined || domains.isKnown(key)) return fact;
  const isUnheard = fact.state === 'unknown' && records.get(key) === undefined;
  const hasVanished = fact.state === 'absent' && fact.uid === '' && phaseOf(vmi) === 'Running';
  return isUnheard || hasVanished ? askLauncher(deps, key, vmi) : fact;
}

/** Collects the facts of one pass; decides nothing. */
export async function observe(deps: ObserveDeps, key: string): Promise<Observed> {
  const { source, records, launchers, expectations, now } = deps;
  const vmi = source.get(key) ?? source.getAnywhere(key);
  const isExpectationOpen = vmi !== undefined && expectations.isOpen(key);
  const domain: DomainFact = isExpectationOpen ? { state: 'absent', uid: '' } : await domainFact(deps, key, vmi);
  const recordedUid = records.get(key)?.uid ?? '';
  const domainUid = domain.state === 'present' ? (domain.domain.Spec.Metadata.KubeVirt.UID ?? '') : domain.uid;
  const own = vmi ?? vmiReference(key, domainUid === '' ? recordedUid : domainUid);
  return {
    key,
    nowMs: now(),
    nodeName: deps.nodeName,
    vmi,
    isExpectationOpen,
    domain,
    recordedUid,
    launcher: launchers.state(own),
    strangerLauncher:
      vmi !== undefined && isStranger(domain, vmi) ? launchers.state(vmiReference(key, domainUid)) : undefined,
    cluster: deps.cluster(),
  };
}
