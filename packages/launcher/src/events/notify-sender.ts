import { createNotifySender } from '@virtwire/shared-proto';
import type { CallResult, NotifySender } from '@virtwire/shared-proto';
import type { NotifyFailure, NotifyPort } from './notify-port.ts';

function failureOf(result: CallResult<unknown>, what: string): NotifyFailure | undefined {
  if (result.ok) return undefined;
  const isRefused = result.error.code === 'Failed';
  const text = `failed to notify ${what} event: ${result.error.detail ?? result.error.message}`;
  return { isRefused, error: new Error(text, { cause: result.error }) };
}

/** The launcher's line to its handler, on the pipe that the handler put into the pod. Connects on the first message. */
export interface HandlerLine extends NotifyPort, AsyncDisposable {}

/** Creates the line. One message at a time; each has 20 s to get through. */
export function createHandlerLine(pipePath: string, sender: NotifySender = createNotifySender(pipePath)): HandlerLine {
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
