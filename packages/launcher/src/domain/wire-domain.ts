import type { cmdV1 } from '@virtwire/shared-proto';
import {
  decideEra,
  erasOfOptions,
  erasOfUserAgent,
  needsAcpiTableObject,
  NO_FACTS,
  renderEra,
} from '@virtwire/shared-proto/compat-rules';
import type { Era } from '@virtwire/shared-proto/compat-rules';
import { renderDomainJson } from '@virtwire/vm-model';
import type { Domain, MigrationMetadata } from '@virtwire/vm-model';

/** Prints domains so that the handler of this VM can read them, whatever its release. */
export interface DomainWriter {
  /**
   * Learns from the options of a sync, and from what the caller says that it is, how old the handler is.
   *
   * @param userAgent as the call has it; undefined when it says nothing.
   */
  noteOptions(options: cmdV1.VirtualMachineOptions, userAgent?: string): void;
  render(domain: Domain): string;
}

/**
 * What one sync shows of its handler holds for those after it, since an old handler describes container disks in its
 * first sync alone. A handler is replaced while the launcher lives on: with another user agent all begins anew.
 */
export function createDomainWriter(): DomainWriter {
  let handler: Era = decideEra(NO_FACTS);
  let agent: string | undefined;
  /** What options have shown, by the words for it: there are few. */
  const shown = new Map<string, Era>();
  return {
    noteOptions: (options, userAgent) => {
      if (userAgent !== agent) shown.clear();
      agent = userAgent;
      for (const era of erasOfOptions(options)) shown.set(renderEra(era), era);
      handler = decideEra({ ...NO_FACTS, bounds: [...shown.values(), ...erasOfUserAgent(userAgent)] });
    },
    render: (domain) =>
      renderDomainJson(completeForHandlers(domain), { isAcpiTableObject: needsAcpiTableObject(handler) }),
  };
}

/**
 * Fills in what handlers written in Go read without looking: an alias of each disk and interface and a MAC of each
 * interface, where null would crash them, and the end of a migration as those up to v1.5 know it.
 *
 * @source KubeVirt v1.9.0 domain JSON, what must not be null; v1.5.0 MigrationMetadata.Completed
 */
export function completeForHandlers(domain: Domain): Domain {
  const { Disks: disks, Interfaces: nics } = domain.Spec.Devices;
  const migration = domain.Spec.Metadata.KubeVirt.Migration;
  const isWhole =
    (disks ?? []).every(({ Alias }) => Alias !== undefined) &&
    (nics ?? []).every(({ Alias, MAC }) => Alias !== undefined && MAC !== undefined);
  if (isWhole && migration === undefined) return domain;
  const { Spec } = domain;
  return {
    ...domain,
    Spec: {
      ...Spec,
      Devices: {
        ...Spec.Devices,
        Disks: disks?.map((disk) => ({ ...disk, Alias: disk.Alias ?? {} })),
        Interfaces: nics?.map((nic) => ({ ...nic, Alias: nic.Alias ?? {}, MAC: nic.MAC ?? {} })),
      },
      Metadata: {
        ...Spec.Metadata,
        KubeVirt: { ...Spec.Metadata.KubeVirt, Migration: migration && withCompleted(migration) },
      },
    },
  };
}

function withCompleted(migration: MigrationMetadata): MigrationMetadata {
  const hasEnded = migration.EndTimestamp !== undefined && migration.Failed !== true;
  return hasEnded ? { ...migration, Completed: true } : migration;
}
