import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_0 } from './v1.0.ts';

/** Emulated as v1.1.1, which knows interfaceDomainAttachment; v1.1.0 does not. */
export const V1_1: LineFacts = {
  line: 'v1.1',
  release: fact('v1.1.1', 'releases.json lines v1.1 tags'),
  shared: {
    ...V1_0.shared,
    authority: fact('localhost', 'releases.json eras.dialAuthority'),
    userAgent: fact('grpc-go/1.56.3', 'releases.json lines v1.1 grpcGo'),
    domainKeys: fact(
      {
        added: [
          'DomainSpec.CurrentMemory',
          'DomainSpec.MaxMemory',
          'Devices.Memory',
          'Devices.Watchdogs',
          'Address.Device',
          'Interface.Backend',
          'Interface.PortForward',
          'LaunchSecurity.DHCert',
          'LaunchSecurity.Session',
          'Serial.Log',
        ],
        removed: ['Devices.Watchdog'],
      },
      'domain-json.md 8',
    ),
  },
  launcher: {
    ...V1_0.launcher,
    cmdRpcCount: fact(30, 'releases.json lines v1.1 rpcCount'),
    crashesWithoutMaxGuest: fact(true, 'wire.md 11'),
    readsInterfaceAttachment: fact(true, 'wire.md 10.4; releases.json eras.interfaceDomainAttachmentFromHandler'),
    statsKeys: fact(['DiskBps', 'Cached', 'NrVirtCpu', 'Delay'], 'wire.md 9 DomainStats'),
  },
  handler: {
    ...V1_0.handler,
    timeouts: fact(
      { vmiRequests: 20, queries: 5, byRpc: { GetLaunchMeasurement: 5, InjectLaunchSecret: 20 } },
      'releases.json eras.rpcTimeoutsSeconds',
    ),
    sendsInterfaceAttachment: fact(true, 'releases.json eras.interfaceDomainAttachmentFromHandler'),
  },
};
