import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_8 } from './v1.8.ts';

/** The newest line, which the build under test follows. */
export const V1_9: LineFacts = {
  line: 'v1.9',
  release: fact('v1.9.0', 'releases.json lines v1.9 tags'),
  shared: {
    ...V1_8.shared,
    domainKeys: fact(
      {
        added: [
          'Status.GuestPanicInfo',
          'Status.PanicCount',
          'Devices.IOMMU',
          'DomainSpec.IOMMUFD',
          'OS.Firmware',
          'OS.FirmwareInfo',
          'NVRam.Format',
          'HostDevice.Driver',
          'HostDevice.ACPI',
          'NUMACell.Distances',
          'LaunchSecurity.QuoteGenerationService',
          'Reservations.Migration',
          'BackupMetadata.QuiesceStatus',
        ],
        removed: ['Disk.ExpandDisksEnabled'],
      },
      'domain-json.md 8',
    ),
  },
  launcher: {
    ...V1_8.launcher,
    cmdRpcCount: fact(36, 'releases.json lines v1.9 rpcCount'),
    expandDisksSwitch: fact('always', 'releases.json eras.expandDisksFlags'),
    refusesMigrationAlreadyOver: fact('sourceAndTarget', 'captures v1.9.0/lifecycle/091-SyncMigrationTarget'),
    migrateNotReadyText: fact('cannot migrate VMI until migrationState is ready', 'wire.md 6 MigrateVirtualMachine'),
    cancelWithoutMigration: fact('success', 'wire.md 6 CancelVirtualMachineMigration'),
    statsWithoutDomain: fact('failure', 'releases.json eras.domainStatsShape'),
    statsKeys: fact(['Cached', 'Delay', 'DataTotal', 'DirtyRate', 'Load'], 'wire.md 9 DomainStats'),
    reconnectEvent: fact('MODIFIED', 'releases.json eras.errorDomainEvents'),
    k8sEvents: fact(['IOerror', 'GuestPanicked', 'GuestAgentPingFailed'], 'releases.json eras.k8sEventsFromLauncher'),
  },
  handler: {
    ...V1_8.handler,
    unreachableInList: fact('unknown', 'handler-core.md 23'),
    expandDisksFlags: fact('none', 'releases.json eras.expandDisksFlags'),
    migrationOptionKeys: fact(
      [
        'Bandwidth',
        'ProgressTimeout',
        'CompletionTimeoutPerGiB',
        'MaxDowntimeMs',
        'UnsafeMigration',
        'AllowAutoConverge',
        'AllowPostCopy',
        'ParallelMigrationThreads',
        'AllowWorkloadDisruption',
        'StallDetectorOptions',
        'Compression',
      ],
      'releases.json eras.migrationOptionsKeys',
    ),
  },
};
