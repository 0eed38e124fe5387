import type { Domain, DomainSpec } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { AgentStore } from '../agent/store.ts';
import { describeState } from '../events/decide-event.ts';
import { newDomain, withAgentFacts } from '../events/domain-document.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { isLibvirtCode, isNoDomain, LIBVIRT_ERROR } from './libvirt-port.ts';
import { isDown } from './state.ts';

const XML_LIVE = 0;
const XML_INACTIVE = 2;
const XML_MIGRATABLE = 8;

/** What describing domains needs. */
export interface GetDomainDeps {
  readonly libvirt: Pick<LibvirtPort, 'listAllDomains' | 'getState' | 'getXml'>;
  readonly metadata: MetadataCache;
  readonly agent: AgentStore;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly log: Logger;
}

async function readXml(deps: GetDomainDeps, ref: DomainRef): Promise<string> {
  const { libvirt } = deps;
  try {
    return await libvirt.getXml(ref, XML_LIVE);
  } catch (caught) {
    if (!isNoDomain(caught) && !isLibvirtCode(caught, LIBVIRT_ERROR.operationInvalid)) throw caught;
    const { state } = await libvirt.getState(ref);
    const inactive = await libvirt.getXml(ref, XML_INACTIVE);
    return isDown(state) ? inactive : libvirt.getXml(ref, XML_MIGRATABLE);
  }
}

async function describe(deps: GetDomainDeps, ref: DomainRef): Promise<Domain> {
  const spec = deps.parseSpec(await readXml(deps, ref));
  const state = await deps.libvirt.getState(ref);
  const domain = newDomain(ref.name, undefined);
  const { interfaces, os } = deps.agent.facts();
  const shown = { ...(interfaces === undefined ? {} : { interfaces }), ...(os === undefined ? {} : { os }) };
  return {
    ...domain,
    Spec: { ...spec, Metadata: { KubeVirt: deps.metadata.snapshot() } },
    Status: withAgentFacts({ ...domain.Status, ...describeState(state) }, shown),
  };
}

/**
 * Describes the first domain that libvirt lists; undefined when there is none.
 *
 * A domain that goes away while it is read is passed over.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:2241
 */
export async function getFirstDomain(deps: GetDomainDeps): Promise<Domain | undefined> {
  for (const ref of await deps.libvirt.listAllDomains()) {
    try {
      return await describe(deps, ref);
    } catch (caught) {
      if (!isNoDomain(caught)) throw caught;
      deps.log.debug({ reason: caught }, 'domain vanished while it was read');
    }
  }
  return undefined;
}
