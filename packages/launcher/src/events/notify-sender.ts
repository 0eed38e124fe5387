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

/** Says when there is a handler at the other end, and once (FM-11.5) when there is none. */
function telling(log: Logger): (pipePath: string, signal: AbortSignal) => Promise<NotifyClient> {
  let isAway = false;
  return async (pipePath, signal) => {
    try {
      const client = await connectNotify(pipePath, { signal });
      isAway = false;
      log.info(`Successfully connected to domain notify socket at ${pipePath}`);
      return client;
    } catch (caught) {
      if (!isAway && !signal.aborted) log.error({ reason: caught }, 'Failed to connect to notify server');
      isAway = true;
      throw caught;
    }
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
