import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import {
  decideHotplugPorts,
  supportsHotplugPorts,
  withCompletedDevices,
  withPlaceholders,
  withRootPorts,
} from './hotplug-ports.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';

const XML_INACTIVE = 2;

/** What defining needs. */
export interface DefinerDeps {
  readonly libvirt: Pick<LibvirtPort, 'defineXml' | 'getXml'>;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly renderSpec: (spec: DomainSpec) => string;
  /** Changes the domain as the VM's sidecars want, before each define. */
  readonly onDefine: (vmi: Vmi, spec: DomainSpec) => Promise<DomainSpec>;
}

/** Gives domains to libvirt. */
export interface DomainDefiner {
  /** Defines a domain with free ports for devices that may be plugged in later. */
  define(vmi: Vmi, spec: DomainSpec, log: Logger): Promise<DomainRef>;
}

/** Creates the definer. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1619` */
export function createDefiner(deps: DefinerDeps): DomainDefiner {
  const { libvirt } = deps;

  async function defineOnce(vmi: Vmi, spec: DomainSpec, log: Logger): Promise<DomainRef> {
    const xml = deps.renderSpec(await deps.onDefine(vmi, spec));
    log.debug(`Domain XML generated. Base64 dump ${Buffer.from(xml).toString('base64')}`);
    try {
      return await libvirt.defineXml(xml);
    } catch (caught) {
      log.error({ reason: caught }, 'Defining the VirtualMachineInstance failed.');
      throw caught;
    }
  }

  return {
    async define(vmi, spec, log) {
      if (!supportsHotplugPorts(vmi, spec)) {
        log.info('Skipping hotplug port allocation: spec does not support PCIe topology');
        return defineOnce(vmi, spec, log);
      }
      const { placeholders, controllers } = decideHotplugPorts(vmi, spec);
      const memory = `memory=${String(spec.Memory.Value ?? 0)} unit=${spec.Memory.Unit ?? ''}`;
      const what = `${placeholders} placeholder interfaces and ${controllers} direct controllers`;
      log.info(`Allocating ${what} for hotplug (${memory})`);
      let current = spec;
      let ref: DomainRef;
      if (placeholders === 0) ref = await defineOnce(vmi, current, log);
      else {
        const virtioModel =
          vmi.spec.domain.devices.useVirtioTransitional === true ? 'virtio-transitional' : 'virtio-non-transitional';
        ref = await defineOnce(vmi, withPlaceholders(spec, placeholders, virtioModel), log);
        current = withCompletedDevices(spec, deps.parseSpec(await libvirt.getXml(ref, XML_INACTIVE)));
        ref = await defineOnce(vmi, current, log);
      }
      return controllers === 0 ? ref : defineOnce(vmi, withRootPorts(current, controllers), log);
    },
  };
}
