import type { cmdV1 } from '@virtwire/shared-proto';
import type { Vmi } from '@virtwire/vm-model';

/** Options of a sync as the conversion takes them: maps as plain objects. */
export type SyncOptions = Omit<cmdV1.VirtualMachineOptions, 'interfaceDomainAttachment' | 'DisksInfo'> & {
  readonly interfaceDomainAttachment: Readonly<Record<string, string>>;
};

/**
 * Completes what an old handler does not know to send: handlers before v1.1.1 say nothing of how an interface is
 * attached, and bridge and masquerade interfaces are always attached by a tap device.
 */
export function completeOptions(vmi: Vmi, options: cmdV1.VirtualMachineOptions | undefined): SyncOptions | undefined {
  if (options === undefined) return undefined;
  const attachments: Record<string, string> = {};
  for (const nic of vmi.spec.domain.devices.interfaces ?? []) {
    if (nic.bridge !== undefined || nic.masquerade !== undefined) attachments[nic.name] = 'tap';
  }
  for (const [name, attachment] of options.interfaceDomainAttachment) attachments[name] = attachment;
  return { ...options, interfaceDomainAttachment: attachments };
}
