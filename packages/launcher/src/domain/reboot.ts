import { domainName } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Vmi } from '@virtwire/vm-model';
import type { Clock } from '../config/clock.ts';
import { LauncherError } from '../errors.ts';
import { TOO_LATE, within } from '../config/within.ts';
import type { LibvirtPort } from './libvirt-port.ts';
import { isLibvirtCode, LIBVIRT_ERROR } from './libvirt-port.ts';

/** What a reboot needs. */
export interface RebootDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'reboot' | 'reset'>;
  readonly clock: Clock;
}

const ACPI_POWER_BUTTON = 1;
const GUEST_AGENT = 2;
/** libvirt waits for the agent for a minute or more, which outlives the 20 s that handlers wait for an answer. */
const PATIENCE_MS = 15_000;

/** Resets the machine as its button would, in whatever state it is. */
export async function resetVm({ libvirt }: RebootDeps, { metadata }: Vmi): Promise<void> {
  await libvirt.reset(await libvirt.lookupDomainByName(domainName(metadata.namespace, metadata.name)));
}

function isAgentConnected(vmi: Vmi): boolean {
  return vmi.status?.conditions?.some(({ type, status }) => type === 'AgentConnected' && status === 'True') === true;
}

/**
 * Asks the guest to reboot: its agent when the VMI says that one is connected, its power button otherwise. An agent
 * that goes silent over its reboot is as expected; one that does not answer is not waited for.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go SoftRebootVMI
 */
export async function softRebootVm({ libvirt, clock }: RebootDeps, vmi: Vmi, log: Logger): Promise<void> {
  const hasAgent = isAgentConnected(vmi);
  if (!hasAgent && vmi.spec.domain.features?.acpi?.enabled === false) {
    throw new LauncherError('BadRequest', 'VMI neither have the agent connected nor the ACPI feature enabled');
  }
  const domain = await libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name));
  const reboot = libvirt.reboot(domain, hasAgent ? GUEST_AGENT : ACPI_POWER_BUTTON).catch((caught: unknown) => {
    if (!isLibvirtCode(caught, LIBVIRT_ERROR.agentUnresponsive)) throw caught;
  });
  if ((await within(clock, PATIENCE_MS, reboot)) !== TOO_LATE) return;
  log.info('The guest was asked to reboot and has not done so yet');
  reboot.catch((caught: unknown) => log.info({ reason: caught }, 'The guest did not reboot'));
}
