import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_4 } from './v1.4.ts';

/** ResetVirtualMachine; the last line whose launchers need DisksInfo and whose source handlers need Completed. */
export const V1_5: LineFacts = {
  line: 'v1.5',
  release: fact('v1.5.3', 'releases.json lines v1.5 tags'),
  shared: {
    ...V1_4.shared,
    domainKeys: fact(
      {
        added: ['DiskDriver.IOThreads', 'Features.VMPort', 'Address.CSSID', 'Address.SSID', 'Address.DevNo'],
        removed: [],
      },
      'domain-json.md 8',
    ),
  },
  launcher: {
    ...V1_4.launcher,
    cmdRpcCount: fact(31, 'releases.json lines v1.5 rpcCount'),
    workloadDisruption: fact('allowWorkloadDisruption', 'releases.json eras.workloadDisruptionGate'),
    statsKeys: fact(['Cached', 'NrVirtCpu', 'Delay', 'DataTotal'], 'wire.md 9 DomainStats'),
  },
  handler: {
    ...V1_4.handler,
    hasResetRoute: fact(true, 'handler-core.md 23 REST routes'),
    domainList: fact('records', 'releases.json eras.handlerSocketsForDomainList'),
    migrationOptionKeys: fact(
      [...V1_4.handler.migrationOptionKeys.value, 'AllowWorkloadDisruption'],
      'releases.json eras.migrationOptionsKeys',
    ),
  },
};
