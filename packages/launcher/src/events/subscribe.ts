import type { Connection } from '@virtwire/libvirt';
import type { Logger } from '@virtwire/telemetry';
import { paramsOf } from '../libvirt-daemon/libvirt-adapter.ts';
import { TypedParams } from '@virtwire/libvirt';
import type { DomainEvent } from './domain-event.ts';

/** Where events go. */
export interface EventSink {
  push(event: DomainEvent): void;
  pushReconnect(): void;
}

const DEVICE_EVENTS = [
  ['deviceAdded', 'added'],
  ['deviceRemoved', 'removed'],
  ['memoryDeviceSizeChange', 'memoryResized'],
] as const;

/**
 * Registers for the six libvirt events that the launcher follows, in KubeVirt's order. The client restores them all
 * after a lost connection or fails as a whole (FM-2.6); the sink is told of each restored one.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:600
 */
export async function subscribeToDomainEvents(connection: Connection, sink: EventSink, log: Logger): Promise<void> {
  await connection.onDomainEvent('lifecycle', ({ domain, event, detail }) => {
    sink.push({ domainName: domain.name, lifecycle: { event, detail } });
  });
  for (const [event, device] of DEVICE_EVENTS) {
    await connection.onDomainEvent(event, ({ domain }) => sink.push({ domainName: domain.name, device }));
  }
  await connection.onDomainEvent('jobCompleted', ({ domain, params }) => {
    sink.push({ domainName: domain.name, job: paramsOf(new TypedParams(params)) });
  });
  await connection.onDomainEvent('agentLifecycle', ({ domain, state, reason }) => {
    sink.push({ domainName: domain.name, agent: { state, reason } });
  });
  connection.onConnectionEvent((event) => {
    if (event.kind === 'lost') log.error({ reason: event.error }, 'Connection to libvirt lost.');
    if (event.kind === 'reconnected') sink.pushReconnect();
  });
  log.info('Registered libvirt event notify callback');
}
