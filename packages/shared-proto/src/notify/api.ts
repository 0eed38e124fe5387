import type { Duplex } from 'node:stream';

import type { CallContext, CallOptions, CallResult } from '../calls.ts';
import type { DeepPartial, DomainEventRequest, K8sEventRequest, Response } from '../gen/kubevirt/notify/v1/notify.ts';
import type { RpcServer } from '../server.ts';

/** Which VMI a connection belongs to, as the handler knows from the pipe that it came through. */
export interface PeerIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What a notify handler is told about a call. */
export interface NotifyContext extends CallContext {
  /** Undefined for a connection that came through the listening socket instead of a pipe. */
  readonly identity: PeerIdentity | undefined;
}

/** What a handler answers: nothing for success, or a failure with its text. */
export type NotifyAnswer = DeepPartial<Response> | undefined;

/** The handler's side of the notify service. An error that is thrown travels as `success` false with its text. */
export interface NotifyHandlers {
  handleDomainEvent(
    request: DomainEventRequest,
    context: NotifyContext,
  ): NotifyAnswer | Promise<NotifyAnswer> | Promise<void>;
  handleK8sEvent(
    request: K8sEventRequest,
    context: NotifyContext,
  ): NotifyAnswer | Promise<NotifyAnswer> | Promise<void>;
}

/** The way into a notify server for the connections of one pipe. */
export interface NotifyEntrance extends Disposable {
  /** Serves a connection as the entrance's VMI; the server closes it beyond its limit of connections. */
  accept(connection: Duplex): void;
  /** Connections that are open now. */
  readonly connectionCount: number;
}

/** A notify server that also takes connections which are known to belong to a VMI. */
export interface NotifyServer extends RpcServer {
  /** Opens an entrance for the pipe of a VMI. Disposing of it ends the connections that came through. */
  openEntrance(identity: PeerIdentity): NotifyEntrance;
}

/** A connection to a notify server, as a launcher has it. Calls never throw. */
export interface NotifyClient extends Disposable {
  readonly socketPath: string;
  readonly version: number;
  handleDomainEvent(event: DeepPartial<DomainEventRequest>, options?: CallOptions): Promise<CallResult<Response>>;
  handleK8sEvent(event: DeepPartial<K8sEventRequest>, options?: CallOptions): Promise<CallResult<Response>>;
  onConnectionLost(listener: () => void): Disposable;
  close(): void;
}

/** Sends events to the handler and gives each one 20 seconds to arrive. */
export interface NotifySender extends AsyncDisposable {
  /**
   * Sends a domain event; events are sent one after the other in the order of the calls.
   *
   * Tries at once and then every second, each time on a fresh connection after a transport error. An answer of
   * `success` false is final.
   */
  sendDomainEvent(event: DeepPartial<DomainEventRequest>, signal?: AbortSignal): Promise<CallResult<Response>>;
  /** Sends a Kubernetes event, by the same rules. */
  sendK8sEvent(event: DeepPartial<K8sEventRequest>, signal?: AbortSignal): Promise<CallResult<Response>>;
}
