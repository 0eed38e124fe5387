import { renderDomainElementXml } from '@virtwire/vm-model';
import type { DomainHostDevice, DomainSpec } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { LauncherError, textOf } from '../errors.ts';
import type { MigrationCalls } from './libvirt-port.ts';

/** Aliases of virtual functions begin so. */
const SRIOV_PREFIX = 'sriov-';
/** How libvirt names aliases that its user gave. */
const USER_ALIAS_PREFIX = 'ua-';
const DETACH_LIMIT_MS = 30_000;
/** LIVE and CONFIG. */
const LIVE_AND_CONFIG = 3;

/** What detaching needs. */
export interface DetachDeps {
  readonly libvirt: Pick<LibvirtPort, 'detachDevice'>;
  readonly calls: Pick<MigrationCalls, 'onDeviceRemoved'>;
  readonly clock: Clock;
}

const aliasOf = ({ Alias }: DomainHostDevice): string => Alias?.Name ?? '';

async function detachAll(deps: DetachDeps, domain: DomainRef, devices: readonly DomainHostDevice[]): Promise<void> {
  for (const device of devices) {
    const xml = renderDomainElementXml('HostDevice', 'hostdev', device);
    try {
      await deps.libvirt.detachDevice(domain, xml, LIVE_AND_CONFIG);
    } catch (caught) {
      throw LauncherError.from(caught, 'MigrationFailed', `failed to detach hostdev ${xml}, err: `);
    }
  }
}

/**
 * Takes the virtual functions from the guest, which cannot come along, and waits until it let go of them. The handler
 * plugs those of the target in after the migration, or those of the source after its failure.
 *
 * @throws {LauncherError} `MigrationFailed` when libvirt refuses, or the guest keeps one for 30 s
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/hotunplug.go SafelyDetachHostDevices
 */
export async function detachVirtualFunctions(
  deps: DetachDeps,
  domain: DomainRef,
  live: DomainSpec,
  log: Logger,
): Promise<void> {
  const devices = (live.Devices.HostDevices ?? []).filter((device) => aliasOf(device).startsWith(SRIOV_PREFIX));
  if (devices.length === 0) {
    log.info('No host-devices to detach.');
    return;
  }
  const wanted = devices.map(aliasOf);
  const removed = new Set<string>();
  const done = new AbortController();
  const unregister = await deps.calls.onDeviceRemoved(domain.name, (alias) => {
    removed.add(alias.startsWith(USER_ALIAS_PREFIX) ? alias.slice(USER_ALIAS_PREFIX.length) : alias);
    if (wanted.every((name) => removed.has(name))) done.abort();
  });
  try {
    await detachAll(deps, domain, devices);
    await deps.clock.sleep(DETACH_LIMIT_MS, done.signal);
  } finally {
    await unregister().catch((caught: unknown) => log.warn(`failed to deregister: ${textOf(caught)}`));
  }
  if (done.signal.aborted) return;
  const gone = wanted.filter((name) => removed.has(name));
  const shown = `[${gone.join(' ')}]/[${wanted.join(' ')}]`;
  throw new LauncherError('MigrationFailed', `failed to wait for host-devices detach, timeout reached: ${shown}`);
}
