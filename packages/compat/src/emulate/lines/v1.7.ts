import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_6 } from './v1.6.ts';

/** GetScreenshot; the last line that looks for the legacy notify socket in the pod. */
export const V1_7: LineFacts = {
  line: 'v1.7',
  release: fact('v1.7.4', 'releases.json lines v1.7 tags'),
  shared: {
    ...V1_6.shared,
    userAgent: fact('grpc-go/1.79.3', 'releases.json lines v1.7 grpcGo'),
    domainKeys: fact(
      { added: ['BlockIO.DiscardGranularity', 'DiskSource.DataStore'], removed: [] },
      'domain-json.md 8',
    ),
  },
  launcher: {
    ...V1_6.launcher,
    cmdRpcCount: fact(33, 'releases.json lines v1.7 rpcCount'),
    guestPingWithoutDomain: fact('success', 'wire.md 6 GuestPing'),
  },
  handler: {
    ...V1_6.handler,
    unknownVmiFields: fact([], 'captures README facts VMI JSON'),
    timeouts: fact(
      {
        vmiRequests: 20,
        queries: 5,
        byRpc: {
          GetLaunchMeasurement: 5,
          InjectLaunchSecret: 20,
          FreezeVirtualMachine: 60,
          GetDomainDirtyRateStats: 20,
          GetScreenshot: 5,
        },
      },
      'releases.json eras.rpcTimeoutsSeconds',
    ),
  },
};
