import type { Domain, Vmi } from '@virtwire/vm-model';
import { domainName } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { isArchitecture } from './architecture.ts';
import type { ConverterContext } from './context.ts';
import { nonEmpty } from './non-empty.ts';

const QEMU_NAMESPACE = 'http://libvirt.org/schemas/domain/qemu/1.0';

/** Names of the domain and of its object. */
export function configureMetadata(vmi: Vmi, domain: Domain): void {
  const { name, namespace } = vmi.metadata;
  domain.ObjectMeta = { name, namespace };
  domain.Spec.XmlNS = QEMU_NAMESPACE;
  domain.Spec.Name = domainName(namespace, name);
}

/**
 * Domain type, and the emulator of a foreign architecture.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/kvm, converter/mshv
 */
export function configureHypervisor(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { circumstances, arch } = context;
  const { hypervisor, hypervisorDeviceAvailable, allowEmulation, emulatorPaths } = circumstances;
  if (context.isCrossArchitecture) {
    const wanted = vmi.spec.architecture ?? '';
    if (!isArchitecture(wanted)) {
      const message = `unsupported guest architecture for cross-architecture emulation: ${wanted}`;
      throw new LauncherError('ConvertFailed', message);
    }
    if (emulatorPaths !== undefined && !emulatorPaths.has(arch.emulatorPath)) {
      throw new LauncherError('ConvertFailed', `required emulator binary not found: ${arch.emulatorPath}`);
    }
    domain.Spec.Type = 'qemu';
    domain.Spec.Devices.Emulator = arch.emulatorPath;
    return;
  }
  if (hypervisorDeviceAvailable) {
    domain.Spec.Type = hypervisor === 'kvm' ? 'kvm' : 'hyperv';
    return;
  }
  if (!allowEmulation) {
    const message = hypervisor === 'kvm' ? 'kvm not present and emulation is not allowed' : 'MSHV not present';
    throw new LauncherError('ConvertFailed', message);
  }
  domain.Spec.Type = 'qemu';
}

/** What the guest's own reboot does: end the machine or run it again. */
export function configureRebootPolicy(vmi: Vmi, domain: Domain): void {
  switch (vmi.spec.domain.rebootPolicy) {
    case 'Terminate':
      domain.Spec.OnReboot = 'destroy';
      break;
    case 'Reboot':
      domain.Spec.OnReboot = 'restart';
      break;
    case undefined:
  }
}

/** The IOMMU descriptor that the node gave the launcher. */
export function configureIommuFd(context: ConverterContext, domain: Domain): void {
  if (context.circumstances.hasIommuFd) domain.Spec.IOMMUFD = { Enabled: 'yes', FDGroup: 'iommu' };
}

/** What every domain of the architecture has. */
export function defaultArchitecture(context: ConverterContext, domain: Domain): void {
  const type = domain.Spec.OS.Type;
  type.OS = 'hvm';
  type.Arch = context.arch.osArch;
  type.Machine = nonEmpty(type.Machine) ?? context.arch.defaultMachine;
}
