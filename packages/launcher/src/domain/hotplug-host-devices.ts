import { domainName, renderDomainElementXml } from '@virtwire/vm-model';
import type { DomainHostDevice, DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError, textOf } from '../errors.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import type { Mutex } from './mutex.ts';

/** What plugging in host devices needs. */
export interface HostDevicePlugDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getXml' | 'attachDevice'>;
  readonly mutex: Mutex;
  readonly parseSpec: (xml: string) => DomainSpec;
  /** Virtual functions for the SR-IOV interfaces that the pod has by now. */
  readonly wantedDevices: (vmi: Vmi) => Promise<readonly DomainHostDevice[]>;
  /** Told of the domain that has got devices. */
  readonly onPlugged: (live: DomainSpec) => void;
}

/** Plugs in host devices, one round at a time. */
export interface HostDevicePlug {
  /**
   * Starts a round and returns at once; what fails in it is only logged.
   *
   * @throws {LauncherError} `BadRequest` while a round runs.
   */
  start(vmi: Vmi, log: Logger): void;
}

const LIVE_AND_CONFIG = 3;
const SRIOV_ALIAS = 'sriov-';

/**
 * Creates the plug of a launcher's VM.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, HotplugHostDevices
 */
export function createHostDevicePlug(deps: HostDevicePlugDeps): HostDevicePlug {
  const { libvirt, mutex, parseSpec } = deps;
  let isBusy = false;

  async function plug(vmi: Vmi, log: Logger): Promise<void> {
    const domain = await libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name));
    const live = parseSpec(await libvirt.getXml(domain, 0));
    const present = new Set((live.Devices.HostDevices ?? []).map(({ Alias }) => Alias?.Name));
    const missing = (await deps.wantedDevices(vmi)).filter(
      ({ Alias }) => Alias?.Name?.startsWith(SRIOV_ALIAS) === true && !present.has(Alias.Name),
    );
    if (missing.length > 0) await attachAll(domain, missing, log);
    deps.onPlugged(missing.length === 0 ? live : parseSpec(await libvirt.getXml(domain, 0)));
  }

  /** Each gets its try, whatever became of the others. */
  async function attachAll(domain: DomainRef, devices: readonly DomainHostDevice[], log: Logger): Promise<void> {
    log.info(`host-devices created: [${devices.map(addressOf).join(', ')}]`);
    const failures: string[] = [];
    for (const device of devices) {
      const xml = renderDomainElementXml('HostDevice', 'hostdev', device);
      try {
        await libvirt.attachDevice(domain, xml, LIVE_AND_CONFIG);
        log.info(`Successfully hot-plug host-device: ${device.Alias?.Name ?? ''}`);
      } catch (caught) {
        failures.push(`failed to attach host-device ${xml}, err: ${textOf(caught)}\n`);
      }
    }
    if (failures.length > 0) throw new LauncherError('BadRequest', failures.join(''));
  }

  return {
    start(vmi, log) {
      if (isBusy) throw new LauncherError('BadRequest', 'hot-plug host-devices is in progress');
      isBusy = true;
      const work = mutex.run(() => plug(vmi, log));
      work
        .catch((caught: unknown) => log.error(`failed to hot-plug host-devices: ${textOf(caught)}`))
        .finally(() => (isBusy = false));
    },
  };
}

/** As lspci writes it: `0000:81:11.2`. */
function addressOf({ Source }: DomainHostDevice): string {
  const hex = (text: string | undefined): string => (text ?? '').replace(/^0x/, '');
  const { Domain, Bus, Slot, Function: number } = Source?.Address ?? {};
  return `${hex(Domain)}:${hex(Bus)}:${hex(Slot)}.${hex(number)}`;
}
