import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_5 } from './v1.5.ts';

/** Launchers inspect images themselves; migrations end by EndTimestamp; ACPI tables become a list. */
export const V1_6: LineFacts = {
  line: 'v1.6',
  release: fact('v1.6.6', 'releases.json lines v1.6 tags'),
  shared: {
    ...V1_5.shared,
    userAgent: fact('grpc-go/1.75.1', 'releases.json lines v1.6 grpcGo'),
    domainKeys: fact(
      { added: ['Controller.PCIHole64', 'Devices.PanicDevices'], removed: ['MigrationMetadata.Completed'] },
      'domain-json.md 8',
    ),
    acpiTable: fact('array', 'domain-json.md 8'),
  },
  launcher: {
    ...V1_5.launcher,
    cmdRpcCount: fact(32, 'releases.json lines v1.6 rpcCount'),
    needsDisksInfo: fact(false, 'wire.md 10.4; releases.json eras.disksInfoFromHandler'),
    printsMigrationCompleted: fact(false, 'releases.json eras.migrationMetadataCompletedKey'),
    reportsTargetEnd: fact(true, 'domain-json.md 4'),
    targetMetadataFromPreparation: fact(true, 'domain-json.md 4'),
    statsKeys: fact(['Cached', 'NrVirtCpu', 'Delay', 'DataTotal', 'DirtyRate', 'Load'], 'wire.md 9 DomainStats'),
  },
  handler: {
    ...V1_5.handler,
    timeouts: fact(
      {
        vmiRequests: 20,
        queries: 5,
        byRpc: {
          GetLaunchMeasurement: 5,
          InjectLaunchSecret: 20,
          FreezeVirtualMachine: 60,
          GetDomainDirtyRateStats: 20,
        },
      },
      'releases.json eras.rpcTimeoutsSeconds',
    ),
    socketLookup: fact('podsOfNode', 'releases.json eras.handlerCmdSocketLookup'),
    sendsDisksInfo: fact(false, 'releases.json eras.disksInfoFromHandler'),
    clusterConfig: fact({ BochsDisplayForEFIGuests: true }, 'captures README facts Options'),
    migrationEnd: fact('endTimestamp', 'releases.json eras.migrationMetadataCompletedKey; failure-modes.md FM-1.11'),
    callsAgainAfterDelete: fact(true, 'captures handlers/v1.6.6/lifecycle/081-Info; handler-core.md 23'),
    watchesNotifySocket: fact(true, 'releases.json eras.notifyServerSelfWatch'),
  },
};
