import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_7 } from './v1.7.ts';

/** Backups; one event per callback of libvirt; no legacy notify socket. */
export const V1_8: LineFacts = {
  line: 'v1.8',
  release: fact('v1.8.4', 'releases.json lines v1.8 tags'),
  shared: {
    ...V1_7.shared,
    domainKeys: fact(
      {
        added: [
          'KubeVirtMetadata.Backup',
          'Controller.Target',
          'DomainSpec.OnReboot',
          'FeatureHyperv.TLBFlush.Direct',
          'FeatureHyperv.TLBFlush.Extended',
        ],
        removed: [],
      },
      'domain-json.md 8',
    ),
    printsNullCreationTimestamp: fact(false, 'releases.json eras.emptyCreationTimestamp'),
  },
  launcher: {
    ...V1_7.launcher,
    cmdRpcCount: fact(35, 'releases.json lines v1.8 rpcCount'),
    notifySockets: fact(['domain-notify-pipe.sock'], 'releases.json eras.launcherNotifySocket; launcher.md 34'),
    extraEventAfterMigration: fact(false, 'releases.json eras.addedDomainEvents'),
    k8sEvents: fact(['IOerror', 'GuestPanicked'], 'releases.json eras.k8sEventsFromLauncher'),
  },
  handler: {
    ...V1_7.handler,
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
