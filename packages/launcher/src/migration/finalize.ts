import { domainName, renderDomainElementXml } from '@virtwire/vm-model';
import type { DomainInterface, DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Clock } from '../config/clock.ts';
import type { GuestTimeSync } from '../domain/guest-time.ts';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import type { Mutex } from '../domain/mutex.ts';
import { LauncherError } from '../errors.ts';

const LINK_REFRESH = 'link-refresh';
/** So that the guest sees the link go down. */
const LINK_DOWN_MS = 100;
/** LIVE and CONFIG. */
const LIVE_AND_CONFIG = 3;

/** What the end of a migration needs on the target. */
export interface FinalizeDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getXml' | 'updateDevice'>;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly guestTime: Pick<GuestTimeSync, 'start'>;
  readonly mutex: Mutex;
  readonly clock: Clock;
}

/** How interfaces are told that they moved, by name. */
export type InterfaceMigrations = ReadonlyMap<string, { readonly Method: string }>;

async function update(deps: FinalizeDeps, domain: DomainRef, nic: DomainInterface, what: string): Promise<void> {
  try {
    await deps.libvirt.updateDevice(domain, renderDomainElementXml('Interface', 'interface', nic), LIVE_AND_CONFIG);
  } catch (caught) {
    const doing = `failed to update network ${nic.Alias?.Name ?? ''}, err: failed to set link ${what}, err: `;
    throw LauncherError.from(caught, 'MigrationFailed', doing);
  }
}

function parseLive({ parseSpec }: FinalizeDeps, xml: string): DomainSpec {
  try {
    return parseSpec(xml);
  } catch (caught) {
    throw LauncherError.from(caught, 'MigrationFailed', 'parsing domain XML failed, err: ');
  }
}

async function refreshLinks(deps: FinalizeDeps, domain: DomainRef, names: ReadonlySet<string>): Promise<void> {
  const xml = await deps.libvirt.getXml(domain, 0);
  const live = parseLive(deps, xml);
  const nics = (live.Devices.Interfaces ?? []).filter(({ Alias }) => names.has(Alias?.Name ?? ''));
  for (const nic of nics) {
    await update(deps, domain, { ...nic, LinkState: { State: 'down' } }, 'down');
    await deps.clock.sleep(LINK_DOWN_MS);
    await update(deps, domain, nic, 'up');
  }
}

/**
 * What is left to do on the target when the VM is there: networks whose binding asks for it see their link go down and
 * up, so that the guest announces itself, and the guest's clock is set (FM-9.7). May be repeated. Without a link to
 * refresh, a domain that is not found or cannot be asked about is no failure: only its clock stays as it is.
 *
 * @throws {LauncherError} `MigrationFailed` when a link cannot be changed; libvirt's error when its domain is not there
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go FinalizeVirtualMachineMigration
 */
export async function finalizeMigration(deps: FinalizeDeps, vmi: Vmi, migrations: InterfaceMigrations): Promise<void> {
  const names = new Set([...migrations].filter(([, { Method }]) => Method === LINK_REFRESH).map(([name]) => name));
  const name = domainName(vmi.metadata.namespace, vmi.metadata.name);
  const domain = await deps.libvirt.lookupDomainByName(name).catch((caught: unknown) => {
    if (names.size === 0) return undefined;
    throw caught;
  });
  if (domain === undefined) return;
  if (names.size > 0) await deps.mutex.run(() => refreshLinks(deps, domain, names));
  deps.guestTime.start(domain);
}
