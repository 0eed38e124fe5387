import { connectNotify, createNotifySender, isRefusal } from '@virtwire/shared-proto';
import type { CallResult, NotifyClient, NotifySender } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import type { NotifyFailure, NotifyPort } from './notify-port.ts';

function failureOf(result: CallResult<unknown>, what: string): NotifyFailure | undefined {
  if (result.ok) return undefined;
  const isRefused = isRefusal(result.error);
  const text = `failed to notify ${what} event: ${result.error.detail ?? result.error.message}`;
  return { isRefused, error: new Error(text, { cause: result.error }) };
}

/** The launcher's line to its handler, on the pipe that the handler put into the pod. Connects on the first message. */
export interface HandlerLine extends NotifyPort, AsyncDisposable {}

/** Says when there is a handler at the other end again; that there is none is told with the message that does not get through. */
function telling(log: Logger): (pipePath: string, signal: AbortSignal) => Promise<NotifyClient> {
  return async (pipePath, signal) => {
    const client = await connectNotify(pipePath, { signal });
    log.info(`Successfully connected to domain notify socket at ${pipePath}`);
    return client;
  };
}

/** Creates the line. One message at a time; each has 20 s to get through. */
export function createHandlerLine(
  pipePath: string,
  log: Logger,
  sender: NotifySender = createNotifySender(pipePath, {}, { connect: telling(log) }),
): HandlerLine {
  return {
    async sendDomainEvent(domainJson, eventType) {
      const result = await sender.sendDomainEvent({ domainJSON: Buffer.from(domainJson), eventType });
      return failureOf(result, 'domain');
    },
    async sendK8sEvent(eventJson) {
      return failureOf(await sender.sendK8sEvent({ eventJSON: Buffer.from(eventJson) }), 'k8s');
    },
    [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
  };
}
