import { domainName } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';
import type { LibvirtPort } from './libvirt-port.ts';
import { isLibvirtCode, LIBVIRT_ERROR } from './libvirt-port.ts';

/** What a reboot asks of libvirt. */
export type RebootPort = Pick<LibvirtPort, 'lookupDomainByName' | 'reboot' | 'reset'>;

const ACPI_POWER_BUTTON = 1;
const GUEST_AGENT = 2;

/** Resets the machine as its button would, in whatever state it is. */
export async function resetVm(libvirt: RebootPort, { metadata }: Vmi): Promise<void> {
  await libvirt.reset(await libvirt.lookupDomainByName(domainName(metadata.namespace, metadata.name)));
}

function isAgentConnected(vmi: Vmi): boolean {
  return vmi.status?.conditions?.some(({ type, status }) => type === 'AgentConnected' && status === 'True') === true;
}

/**
 * Asks the guest to reboot: its agent when the VMI says that one is connected, its power button otherwise. An agent
 * that goes silent over its reboot is as expected.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go SoftRebootVMI
 */
export async function softRebootVm(libvirt: RebootPort, vmi: Vmi): Promise<void> {
  const hasAgent = isAgentConnected(vmi);
  if (!hasAgent && vmi.spec.domain.features?.acpi?.enabled === false) {
    throw new LauncherError('BadRequest', 'VMI neither have the agent connected nor the ACPI feature enabled');
  }
  const domain = await libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name));
  try {
    await libvirt.reboot(domain, hasAgent ? GUEST_AGENT : ACPI_POWER_BUTTON);
  } catch (caught) {
    if (!isLibvirtCode(caught, LIBVIRT_ERROR.agentUnresponsive)) throw caught;
  }
}
