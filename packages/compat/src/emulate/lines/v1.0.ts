import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V0_59 } from './v0.59.ts';

/** The last line whose clients name the socket path as authority; the first with a launcher of 26 RPCs. */
export const V1_0: LineFacts = {
  line: 'v1.0',
  release: fact('v1.0.1', 'releases.json lines v1.0 tags'),
  shared: {
    ...V0_59.shared,
    userAgent: fact('grpc-go/1.49.0', 'releases.json lines v1.0 grpcGo'),
    domainKeys: fact(
      {
        added: [
          'DomainSpec.VCPUs',
          'DiskSource.Reservations',
          'MemBalloon.FreePageReporting',
          'TPMBackend.PersistentState',
          'BootMenu.Enable',
        ],
        removed: ['BootMenu.Enabled'],
      },
      'domain-json.md 8',
    ),
  },
  launcher: {
    ...V0_59.launcher,
    interfacesAtDefine: fact(4, 'captures v1.0.1/lifecycle/023-notify-HandleDomainEvent'),
    cmdRpcCount: fact(26, 'releases.json lines v1.0 rpcCount'),
    expandDisksSwitch: fact('optionsOrClusterConfig', 'releases.json eras.expandDisksFlags'),
    statsKeys: fact(['DiskBps', 'Cached', 'NrVirtCpu'], 'wire.md 9 DomainStats'),
  },
  handler: {
    ...V0_59.handler,
    unimplemented: fact('passedThrough', 'releases.json eras.unimplementedDetection'),
    expandDisksFlags: fact('optionsAndClusterConfig', 'releases.json eras.expandDisksFlags'),
    clusterConfig: fact({}, 'history.json ClusterConfig; captures README facts Options'),
    migrationOptionKeys: fact(
      [...V0_59.handler.migrationOptionKeys.value, 'ParallelMigrationThreads'],
      'releases.json eras.migrationOptionsKeys',
    ),
  },
};
