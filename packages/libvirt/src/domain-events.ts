import type { Domain } from './domain.ts';
import { DomainEventID } from './gen/constants.gen.ts';
import type { EventMessages } from './gen/types.gen.ts';

/** Domain events by the name this client gives them: libvirt's event id and the message that carries it. */
export const DOMAIN_EVENTS = {
  lifecycle: [DomainEventID.LIFECYCLE, 'DOMAIN_EVENT_CALLBACK_LIFECYCLE'],
  reboot: [DomainEventID.REBOOT, 'DOMAIN_EVENT_CALLBACK_REBOOT'],
  rtcChange: [DomainEventID.RTC_CHANGE, 'DOMAIN_EVENT_CALLBACK_RTC_CHANGE'],
  watchdog: [DomainEventID.WATCHDOG, 'DOMAIN_EVENT_CALLBACK_WATCHDOG'],
  ioError: [DomainEventID.IO_ERROR, 'DOMAIN_EVENT_CALLBACK_IO_ERROR'],
  graphics: [DomainEventID.GRAPHICS, 'DOMAIN_EVENT_CALLBACK_GRAPHICS'],
  ioErrorReason: [DomainEventID.IO_ERROR_REASON, 'DOMAIN_EVENT_CALLBACK_IO_ERROR_REASON'],
  controlError: [DomainEventID.CONTROL_ERROR, 'DOMAIN_EVENT_CALLBACK_CONTROL_ERROR'],
  blockJob: [DomainEventID.BLOCK_JOB, 'DOMAIN_EVENT_CALLBACK_BLOCK_JOB'],
  diskChange: [DomainEventID.DISK_CHANGE, 'DOMAIN_EVENT_CALLBACK_DISK_CHANGE'],
  trayChange: [DomainEventID.TRAY_CHANGE, 'DOMAIN_EVENT_CALLBACK_TRAY_CHANGE'],
  pmWakeup: [DomainEventID.PMWAKEUP, 'DOMAIN_EVENT_CALLBACK_PMWAKEUP'],
  pmSuspend: [DomainEventID.PMSUSPEND, 'DOMAIN_EVENT_CALLBACK_PMSUSPEND'],
  balloonChange: [DomainEventID.BALLOON_CHANGE, 'DOMAIN_EVENT_CALLBACK_BALLOON_CHANGE'],
  pmSuspendDisk: [DomainEventID.PMSUSPEND_DISK, 'DOMAIN_EVENT_CALLBACK_PMSUSPEND_DISK'],
  deviceRemoved: [DomainEventID.DEVICE_REMOVED, 'DOMAIN_EVENT_CALLBACK_DEVICE_REMOVED'],
  blockJob2: [DomainEventID.BLOCK_JOB_2, 'DOMAIN_EVENT_BLOCK_JOB_2'],
  tunable: [DomainEventID.TUNABLE, 'DOMAIN_EVENT_CALLBACK_TUNABLE'],
  agentLifecycle: [DomainEventID.AGENT_LIFECYCLE, 'DOMAIN_EVENT_CALLBACK_AGENT_LIFECYCLE'],
  deviceAdded: [DomainEventID.DEVICE_ADDED, 'DOMAIN_EVENT_CALLBACK_DEVICE_ADDED'],
  migrationIteration: [DomainEventID.MIGRATION_ITERATION, 'DOMAIN_EVENT_CALLBACK_MIGRATION_ITERATION'],
  jobCompleted: [DomainEventID.JOB_COMPLETED, 'DOMAIN_EVENT_CALLBACK_JOB_COMPLETED'],
  deviceRemovalFailed: [DomainEventID.DEVICE_REMOVAL_FAILED, 'DOMAIN_EVENT_CALLBACK_DEVICE_REMOVAL_FAILED'],
  metadataChange: [DomainEventID.METADATA_CHANGE, 'DOMAIN_EVENT_CALLBACK_METADATA_CHANGE'],
  blockThreshold: [DomainEventID.BLOCK_THRESHOLD, 'DOMAIN_EVENT_BLOCK_THRESHOLD'],
  memoryFailure: [DomainEventID.MEMORY_FAILURE, 'DOMAIN_EVENT_MEMORY_FAILURE'],
  memoryDeviceSizeChange: [DomainEventID.MEMORY_DEVICE_SIZE_CHANGE, 'DOMAIN_EVENT_MEMORY_DEVICE_SIZE_CHANGE'],
  nicMacChange: [DomainEventID.NIC_MAC_CHANGE, 'DOMAIN_EVENT_NIC_MAC_CHANGE'],
} as const satisfies Record<string, readonly [number, keyof EventMessages]>;

/** Name of a domain event. */
export type DomainEventKind = keyof typeof DOMAIN_EVENTS;

type Message<K extends DomainEventKind> = EventMessages[(typeof DOMAIN_EVENTS)[K][1]];
type Flat<M> = M extends { readonly msg: infer Inner } ? Inner & Omit<M, 'msg'> : M;

/** A domain event: the fields of libvirt's message, with the domain as a handle. In a last event its `id` is -1. */
export type DomainEvent<K extends DomainEventKind> = Omit<Flat<Message<K>>, 'dom' | 'callbackID'> & {
  readonly kind: K;
  readonly domain: Domain;
};

/** A registration; closing it tells the daemon too. */
export interface Subscription extends AsyncDisposable {
  /** Stops the delivery at once, then deregisters in the daemon if there is a connection. */
  close(): Promise<void>;
}

/** Which QEMU monitor events to deliver. */
export interface MonitorEventFilter {
  readonly domain?: Domain;
  /** Name of the event, `SHUTDOWN` for example; default all. */
  readonly event?: string;
  /** `event` is a regular expression. */
  readonly isRegex?: boolean;
  readonly ignoreCase?: boolean;
}

/** A QEMU monitor event. */
export interface MonitorEvent {
  readonly domain: Domain;
  readonly event: string;
  readonly seconds: bigint;
  readonly micros: number;
  /** JSON text of the event's data. */
  readonly details: string | null;
}
