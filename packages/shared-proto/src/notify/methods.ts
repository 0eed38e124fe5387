import { status } from '@grpc/grpc-js';

import { NotifyInfoResponse } from '../gen/kubevirt/notify/info/info.ts';
import { DomainEventRequest, K8sEventRequest, type MessageFns, Response } from '../gen/kubevirt/notify/v1/notify.ts';
import { PROTOCOL_VERSION } from '../handshake.ts';
import { errorText, type RpcMethod, StatusError } from '../rpc-host.ts';
import type { NotifyAnswer, NotifyContext, NotifyHandlers, PeerIdentity } from './api.ts';

/** Paths of the notify services. Go's stubs spell the second one HandleK8SEvent; the wire does not. */
export const NOTIFY_PATHS = {
  info: '/kubevirt.notify.info.NotifyInfo/Info',
  domainEvent: '/kubevirt.notify.v1.Notify/HandleDomainEvent',
  k8sEvent: '/kubevirt.notify.v1.Notify/HandleK8sEvent',
} as const;

/** The words of grpc-go for bytes that are no message. */
const UNMARSHAL_TEXT = 'grpc: error unmarshalling request: proto: cannot parse invalid wire-format data';

type Handle<Request> = (
  request: Request,
  context: NotifyContext,
) => NotifyAnswer | Promise<NotifyAnswer> | Promise<void>;

/** The methods of the notify services for the connections of one peer. */
export function notifyMethods(
  handlers: NotifyHandlers,
  identity: PeerIdentity | undefined,
  versions: readonly number[] = [PROTOCOL_VERSION],
): readonly RpcMethod[] {
  const info = NotifyInfoResponse.fromPartial({ supportedNotifyVersions: [...versions] });
  const infoBytes = NotifyInfoResponse.encode(info).finish();
  return [
    { path: NOTIFY_PATHS.info, handle: () => Promise.resolve(infoBytes) },
    eventMethod(NOTIFY_PATHS.domainEvent, DomainEventRequest, handlers.handleDomainEvent.bind(handlers), identity),
    eventMethod(NOTIFY_PATHS.k8sEvent, K8sEventRequest, handlers.handleK8sEvent.bind(handlers), identity),
  ];
}

function eventMethod<Request>(
  path: string,
  message: MessageFns<Request>,
  handler: Handle<Request>,
  identity: PeerIdentity | undefined,
): RpcMethod {
  return {
    path,
    handle: async (bytes, context) => {
      const request = decode(message, bytes);
      const answer = await answerOf(() => handler(request, { ...context, identity }));
      return Response.encode(Response.fromPartial({ success: true, ...answer })).finish();
    },
  };
}

/** Never a gRPC error: an old launcher would drop its connection and retry for 20 s (FM-1.4). */
async function answerOf(run: () => ReturnType<Handle<unknown>>): Promise<NotifyAnswer> {
  try {
    return (await run()) ?? undefined;
  } catch (caught) {
    return { success: false, message: errorText(caught) };
  }
}

function decode<Request>(message: MessageFns<Request>, bytes: Buffer): Request {
  try {
    return message.decode(bytes);
  } catch {
    throw new StatusError(status.INTERNAL, UNMARSHAL_TEXT);
  }
}
