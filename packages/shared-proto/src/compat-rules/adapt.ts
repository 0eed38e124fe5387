import type { DeepPartial, DiskInfo, VirtualMachineOptions } from '../gen/kubevirt/cmd/v1/cmd.ts';
import { CONTENT_RULES } from './content-rules.ts';
import { type Era, mayBe, mustBe } from './era.ts';

/** Options as a caller writes them. */
type Options = DeepPartial<VirtualMachineOptions>;

/** True if a launcher may need to be told about the images of container disks. */
export function needsDisksInfo(launcher: Era): boolean {
  return mayBe(launcher, CONTENT_RULES.disksInfo.peers);
}

/** Adds to the options of v1.9 what older launchers need; launchers that are new enough get them as they are. */
export function adaptOptions(
  options: Options,
  launcher: Era,
  disksInfo: ReadonlyMap<string, DeepPartial<DiskInfo>> = new Map(),
): Options {
  const expands = mayBe(launcher, CONTENT_RULES.expandDisks.peers);
  const tellsDisks = disksInfo.size > 0 && needsDisksInfo(launcher);
  return {
    ...options,
    ...(expands
      ? { ExpandDisksEnabled: true, clusterConfig: { ...options.clusterConfig, ExpandDisksEnabled: true } }
      : {}),
    ...(tellsDisks ? { DisksInfo: new Map(disksInfo) } : {}),
  } as Options;
}

/** True if the ACPI table of a domain has to be one object for a handler to read it. */
export function needsAcpiTableObject(handler: Era): boolean {
  return mustBe(handler, CONTENT_RULES.acpiTable.peers);
}
