import type { DomainDataStore, DomainDisk, DomainSpec } from '@virtwire/vm-model';

/**
 * Data stores of tracked disks: where their bytes lie, behind the overlays that say what changed.
 *
 * libvirt before 10.10 runs such a disk, since the overlay itself names its data, but says nothing of it in the domain's
 * XML, by which backups, sizes and the handler know a tracked disk.
 */
export interface DataStores {
  /** Notes the data stores of a domain that was converted from its VMI. */
  remember(spec: DomainSpec): void;
  /** A domain as libvirt describes it, with the data stores that it leaves out. */
  complete(spec: DomainSpec): DomainSpec;
}

/** Creates a memory of the last converted domain. */
export function createDataStores(): DataStores {
  let byOverlay: ReadonlyMap<string, DomainDataStore> = new Map();
  const complete = (disk: DomainDisk): DomainDisk => {
    const DataStore = byOverlay.get(disk.Source?.File ?? '');
    if (DataStore === undefined || disk.Source?.DataStore !== undefined) return disk;
    return { ...disk, Source: { ...disk.Source, DataStore } };
  };
  return {
    remember({ Devices }) {
      byOverlay = new Map(
        (Devices.Disks ?? []).flatMap(({ Source }) =>
          Source?.DataStore === undefined || Source.File === undefined
            ? []
            : [[Source.File, Source.DataStore] as const],
        ),
      );
    },
    complete(spec) {
      const { Disks } = spec.Devices;
      if (byOverlay.size === 0 || Disks === undefined) return spec;
      return { ...spec, Devices: { ...spec.Devices, Disks: Disks.map(complete) } };
    },
  };
}
