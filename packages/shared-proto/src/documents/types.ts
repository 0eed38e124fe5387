import type { Vmi } from '@virtwire/vm-model';
import type { EmbeddedField, EmbeddedValue } from '@virtwire/vm-model/payloads';

import type { CallOptions, CallResult } from '../calls.ts';
import type { CmdClient } from '../cmd/api.ts';
import type { CmdRequestInit, CmdResponse, CmdRpc } from '../cmd/rpcs.ts';
import type { DomainEventRequest, K8sEventRequest } from '../gen/kubevirt/notify/v1/notify.ts';
import type { CMD_DOCUMENTS, NOTIFY_DOCUMENTS } from './table.ts';

type RequestTree<R extends CmdRpc> = (typeof CMD_DOCUMENTS)[R]['request'];
type ResponseTree<R extends CmdRpc> = (typeof CMD_DOCUMENTS)[R]['response'];

type ReadLeaf<L> = L extends 'VMI' ? Vmi : L extends EmbeddedField ? EmbeddedValue<L> : never;

/** What a caller may leave out is Go's zero value; whole objects of the API are given whole. */
type WrittenLeaf<L> = L extends 'VMI'
  ? Vmi
  : L extends EmbeddedField
    ? EmbeddedValue<L> extends readonly unknown[] | null
      ? EmbeddedValue<L>
      : Partial<EmbeddedValue<L>>
    : never;

/** A message as it was read, with documents in place of their JSON; undefined where there was none. */
export type ReadMessage<M, T> = {
  [K in keyof M]: K extends keyof T
    ? T[K] extends string
      ? ReadLeaf<T[K]> | undefined
      : ReadMessage<NonNullable<M[K]>, T[K]> | Extract<M[K], undefined>
    : M[K];
};

/** A message as it is written, with documents in place of their JSON; JSON that is there already may stay bytes. */
export type WrittenMessage<M, T> = {
  [K in keyof M]?: K extends keyof T
    ? T[K] extends string
      ? WrittenLeaf<T[K]> | Uint8Array | undefined
      : WrittenMessage<NonNullable<M[K]>, T[K]> | undefined
    : M[K];
};

/** A request with documents. A VMI has to be given wherever the message has one. */
export type DocumentRequest<R extends CmdRpc> = WrittenMessage<CmdRequestInit<R>, RequestTree<R>> &
  (RequestTree<R> extends { readonly vmi: 'VMI' } ? { readonly vmi: Vmi } : unknown);

/** A response with documents. */
export type DocumentResponse<R extends CmdRpc> = ReadMessage<CmdResponse<R>, ResponseTree<R>>;

/** A request may be left out where the message has no VMI. */
type RequestArguments<R extends CmdRpc> =
  RequestTree<R> extends { readonly vmi: 'VMI' }
    ? [request: DocumentRequest<R>, options?: CallOptions]
    : [request?: DocumentRequest<R>, options?: CallOptions];

/** One method per RPC, as {@link CmdClient} has them, with documents instead of JSON. */
export type DocumentCalls = {
  readonly [R in CmdRpc as Uncapitalize<R>]: (...args: RequestArguments<R>) => Promise<CallResult<DocumentResponse<R>>>;
};

/** A connection to a launcher that speaks in documents. Calls never throw. */
export interface DocumentClient extends DocumentCalls {
  /** The connection itself, for its end and for messages as they are. */
  readonly client: CmdClient;
}

/** A domain event with its documents. */
export type DomainEvent = ReadMessage<DomainEventRequest, (typeof NOTIFY_DOCUMENTS)['DomainEventRequest']>;

/** A Kubernetes event with its document. */
export type K8sEvent = ReadMessage<K8sEventRequest, (typeof NOTIFY_DOCUMENTS)['K8sEventRequest']>;
