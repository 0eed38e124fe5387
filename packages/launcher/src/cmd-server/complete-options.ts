import type { cmdV1 } from '@virtwire/shared-proto';
import type { Vmi } from '@virtwire/vm-model';
import type { ConverterOptions } from '../converter/circumstances.ts';

/** Options of a sync as the conversion takes them. */
export type SyncOptions = ConverterOptions;

/**
 * A request's options, completed by what an old handler does not know to send: handlers before v1.1.1 say nothing of
 * how an interface is attached, and bridge and masquerade interfaces are always attached by a tap device.
 */
export function completeOptions(vmi: Vmi, options: cmdV1.VirtualMachineOptions): SyncOptions {
  const attachments: Record<string, string> = {};
  for (const nic of vmi.spec.domain.devices.interfaces ?? []) {
    if (nic.bridge !== undefined || nic.masquerade !== undefined) attachments[nic.name] = 'tap';
  }
  for (const [name, attachment] of options.interfaceDomainAttachment) attachments[name] = attachment;
  const { topology } = options;
  return {
    VirtualMachineSMBios: options.VirtualMachineSMBios,
    MemBalloonStatsPeriod: options.MemBalloonStatsPeriod,
    PreallocatedVolumes: options.PreallocatedVolumes,
    topology: topology === undefined ? undefined : { numaCells: topology.numa_cells },
    clusterConfig: options.clusterConfig,
    interfaceDomainAttachment: attachments,
    GraceHostDeviceAliases: options.GraceHostDeviceAliases,
  };
}
