import type { Duplex } from 'node:stream';
import type { CopyDescriptors } from './descriptors.ts';

/** When and how often to try again after the connection is lost. */
export interface ReconnectPolicy {
  /** First pause; each further one is twice as long, with jitter. Default 100 ms. */
  readonly initialDelayMs?: number;
  /** Longest pause. Default 5 s. */
  readonly maxDelayMs?: number;
  /** The connection ends for good when it could not be restored for this long. Default 10 minutes. */
  readonly giveUpAfterMs?: number;
}

/** Liveness check by the client; the daemon's own pings are answered in any case. */
export interface KeepalivePolicy {
  /** Silence of the daemon after which it is pinged. Default 5 s. */
  readonly intervalMs?: number;
  /** Pings without an answer at which the connection counts as lost. Default 5. */
  readonly count?: number;
}

/** How to reach a daemon, and the limits of the connection. */
export interface ConnectOptions {
  /**
   * `qemu:///system`, `qemu:///session`, or with a socket `qemu+unix:///session?socket=PATH`. Default: the variable
   * LIBVIRT_DEFAULT_URI, else `qemu:///system`.
   */
  readonly uri?: string;
  /** Socket of the daemon; overrides what the URI says. */
  readonly socketPath?: string;
  /** Asks for a read-only connection (socket `...-ro` unless a path is given). */
  readonly readOnly?: boolean;
  /** Limit of one opening: connect, authenticate, open, features. Default 15 s. */
  readonly openTimeoutMs?: number;
  /** Keeps trying for this long while there is no daemon yet. Default 0: one try. */
  readonly waitForDaemonMs?: number;
  /** Default deadline of calls. Default 120 s; migration, dump, save and restore have none unless asked. */
  readonly callTimeoutMs?: number;
  /** Calls sent and not answered, at most. Default 4, as the daemon reads 5 at a time. */
  readonly maxInFlight?: number;
  /** Calls waiting for a slot, at most. Default 1024. */
  readonly maxQueued?: number;
  readonly keepalive?: KeepalivePolicy | false;
  /** `false`: a lost connection ends for good. */
  readonly reconnect?: ReconnectPolicy | false;
  /** Replaces the unix socket, for tests and tunnels; called once per opening. */
  readonly openTransport?: () => Duplex | Promise<Duplex>;
  /**
   * Passes file descriptors with calls, which Node cannot do by itself; `@virtwire/host` has a function for it. Without
   * it such calls are refused.
   */
  readonly copyDescriptors?: CopyDescriptors;
  /** Gives the opening up. */
  readonly signal?: AbortSignal;
}
