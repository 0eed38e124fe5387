import type { Vmi } from '@virtwire/vm-model';

import type { HandlerFacts } from '../facts/line-facts.ts';
import type { Fields } from '../schema/release-schema.ts';

/** What a node is like in the options of an emulated handler. */
const SMBIOS: Fields = { manufacturer: 'KubeVirt', product: 'None', family: 'KubeVirt' };
const BALLOON_PERIOD_S = 10;
const TOPOLOGY: Fields = {
  numa_cells: [
    {
      memory: { amount: 16_738_520n, unit: 'KiB' },
      pages: [{ count: 4_184_630n, unit: 'KiB', size: 4 }],
      distances: [{ value: 10n }],
      cpus: [{ siblings: [0] }, { id: 1, siblings: [1] }],
    },
  ],
};

/** What a launcher up to v1.5 has to be told of each container disk. */
const DISK_INFO: Fields = { format: 'qcow2', actualSize: 200_704n, virtualSize: 67_108_864n };

/** Options of SyncVirtualMachine. @source wire.md 5; captures README facts Options */
export function syncOptions(facts: HandlerFacts, vmi: Vmi, isFirst: boolean, expandDisks: boolean): Fields {
  return {
    VirtualMachineSMBios: SMBIOS,
    MemBalloonStatsPeriod: BALLOON_PERIOD_S,
    topology: TOPOLOGY,
    // Later syncs leave it out: launchers keep what they were told.
    ...(facts.sendsDisksInfo.value && isFirst ? disksInfo(vmi) : {}),
    ...clusterOptions(facts, expandDisks),
    ...(facts.sendsInterfaceAttachment.value ? { interfaceDomainAttachment: attachments(vmi) } : {}),
  };
}

/** Options of SyncMigrationTarget. @source releases.json eras.syncMigrationTargetOptions */
export function targetOptions(facts: HandlerFacts, vmi: Vmi, expandDisks: boolean): Fields {
  const own = ['VirtualMachineSMBios', 'MemBalloonStatsPeriod'];
  const options = Object.entries(syncOptions(facts, vmi, true, expandDisks));
  return Object.fromEntries(options.filter(([key]) => !own.includes(key)));
}

/** Options of SyncVirtualMachineCPUs and SyncVirtualMachineMemory. */
export function hotplugOptions(facts: HandlerFacts, expandDisks: boolean): Fields {
  return { topology: TOPOLOGY, ...clusterOptions(facts, expandDisks) };
}

/** Options of FinalizeVirtualMachineMigration. */
export function finalizeOptions(facts: HandlerFacts): Fields {
  // No binding plugin of the emulated cluster wants a refresh, so the map has no entry; the message is there.
  return facts.finalizeOptions.value === 'interfaceMigration' ? { interfaceMigration: {} } : {};
}

function clusterOptions(facts: HandlerFacts, expandDisks: boolean): Fields {
  const flags = facts.expandDisksFlags.value;
  const config = facts.clusterConfig.value;
  const isSent = expandDisks && flags !== 'none';
  return {
    ...(isSent ? { ExpandDisksEnabled: true } : {}),
    ...(config === undefined ? {} : { clusterConfig: { ...config, ...(isSent ? { ExpandDisksEnabled: true } : {}) } }),
  };
}

function disksInfo(vmi: Vmi): Fields {
  const names = (vmi.spec.volumes ?? []).filter((volume) => volume.containerDisk !== undefined).map(({ name }) => name);
  return names.length === 0 ? {} : { DisksInfo: Object.fromEntries(names.map((name) => [name, DISK_INFO])) };
}

function attachments(vmi: Vmi): Fields {
  const nics = (vmi.spec.domain.devices.interfaces ?? []).filter(
    ({ bridge, masquerade }) => bridge !== undefined || masquerade !== undefined,
  );
  return Object.fromEntries(nics.map(({ name }) => [name, 'tap']));
}

/** All keys of any release, with what a cluster sets by default. @source wire.md 9 MigrationOptions */
const MIGRATION_OPTIONS: Fields = {
  Bandwidth: '0',
  ProgressTimeout: 150,
  CompletionTimeoutPerGiB: 150,
  MaxDowntimeMs: 900,
  UnsafeMigration: false,
  AllowAutoConverge: false,
  AllowPostCopy: false,
  ParallelMigrationThreads: 8,
  AllowWorkloadDisruption: false,
  StallDetectorOptions: null,
  Compression: null,
};

/** The document of MigrateVirtualMachine: exactly the release's keys. */
export function migrationOptions(facts: HandlerFacts): string {
  return JSON.stringify(
    Object.fromEntries(facts.migrationOptionKeys.value.map((key) => [key, MIGRATION_OPTIONS[key] ?? null])),
  );
}
