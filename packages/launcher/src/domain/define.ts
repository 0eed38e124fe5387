import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import { countHotplugPorts } from '../converter/ports.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { withCompletedDevices, withPlaceholders, withRootPorts } from './hotplug-ports.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';

const XML_INACTIVE = 2;

/** What defining needs. */
export interface DefinerDeps {
  readonly libvirt: Pick<LibvirtPort, 'defineXml' | 'getXml'>;
  readonly metadata: Pick<MetadataCache, 'uid'>;
  readonly parseSpec: (xml: string) => DomainSpec;
  /** The domain's XML, changed as the VM's sidecars and plugins want; asked before each define. */
  readonly onDefine: (vmi: Vmi, spec: DomainSpec) => Promise<string>;
}

/** Gives domains to libvirt. */
export interface DomainDefiner {
  /** Defines a domain with free ports for devices that may be plugged in later. */
  define(vmi: Vmi, spec: DomainSpec, log: Logger): Promise<DomainRef>;
}

/**
 * The domain as KubeVirt has it after a define, read back from its XML: QEMU's own arguments and their namespace are
 * lost, and with them ignition data and the firmware's debug port where ports are added. What a sidecar adds to each
 * define stays.
 */
function readBack(spec: DomainSpec): DomainSpec {
  return { ...spec, XmlNS: undefined, QEMUCmd: undefined };
}

function virtioModelOf(vmi: Vmi): string {
  const { useVirtioTransitional } = vmi.spec.domain.devices;
  return useVirtioTransitional === true ? 'virtio-transitional' : 'virtio-non-transitional';
}

/** Creates the definer. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1619` */
export function createDefiner(deps: DefinerDeps): DomainDefiner {
  const { libvirt, metadata } = deps;

  /**
   * The UID is known before libvirt's event can be: a handler knows a domain by it. A domain that is refused has none,
   * one whose change is refused keeps its own.
   */
  async function defineOwned(vmi: Vmi, xml: string): Promise<DomainRef> {
    const before = metadata.uid.load();
    metadata.uid.set(vmi.metadata.uid);
    try {
      return await libvirt.defineXml(xml);
    } catch (caught) {
      metadata.uid.set(before);
      throw caught;
    }
  }

  async function defineOnce(vmi: Vmi, spec: DomainSpec, log: Logger): Promise<DomainRef> {
    const xml = await deps.onDefine(vmi, spec);
    log.debug(`Domain XML generated. Base64 dump ${Buffer.from(xml).toString('base64')}`);
    try {
      return await defineOwned(vmi, xml);
    } catch (caught) {
      log.error({ reason: caught }, 'Defining the VirtualMachineInstance failed.');
      throw caught;
    }
  }

  return {
    async define(vmi, spec, log) {
      const ports = countHotplugPorts(vmi, spec);
      if (ports === undefined) {
        log.info('Skipping hotplug port allocation: spec does not support PCIe topology');
        return defineOnce(vmi, spec, log);
      }
      const { placeholderInterfaces, extraRootPorts } = ports;
      const memory = `memory=${String(spec.Memory.Value ?? 0)} unit=${spec.Memory.Unit ?? ''}`;
      const what = `${placeholderInterfaces} placeholder interfaces and ${extraRootPorts} direct controllers`;
      log.info(`Allocating ${what} for hotplug (${memory})`);
      let current = spec;
      let ref = await defineOnce(vmi, withPlaceholders(spec, placeholderInterfaces, virtioModelOf(vmi)), log);
      if (placeholderInterfaces > 0) {
        current = withCompletedDevices(spec, deps.parseSpec(await libvirt.getXml(ref, XML_INACTIVE)));
        ref = await defineOnce(vmi, current, log);
      }
      return extraRootPorts === 0 ? ref : defineOnce(vmi, withRootPorts(readBack(current), extraRootPorts), log);
    },
  };
}
