import type { Logger } from '@virtwire/telemetry';
import type { EventRecorder } from './events/recorder.ts';
import type { NodeParts } from './prepare/parts.ts';
import type { VmiSource } from './vmi-source/source.ts';

/** What a handler needs from outside. */
export interface HandlerDeps {
  readonly source: VmiSource;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** Node-side work; default: the real one of this package (network phase 1, devices, container disks). */
  readonly parts?: Partial<NodeParts>;
}

/** A running handler. Stopping it never touches a VM. */
export interface Handler {
  /** Resolves when events are accepted and the workers run; domains may still be unknown. */
  start(): Promise<void>;
  /** Stops workers, closes connections and sockets; bounded to 10 s. Ghost records stay. */
  stop(): Promise<void>;
  /** Rejects when the handler cannot go on (notify server failed ten times in a row). */
  readonly failed: Promise<never>;
}
