import { answerError, callError, decodeError, type ErrorTexts } from '../call-errors.ts';
import type { CallOptions, CallResult } from '../calls.ts';
import type { UnixChannel } from '../channel.ts';
import { NotifyInfoResponse } from '../gen/kubevirt/notify/info/info.ts';
import { DomainEventRequest, K8sEventRequest, Response } from '../gen/kubevirt/notify/v1/notify.ts';
import { connect, type ConnectOptions, type InfoService } from '../handshake.ts';
import type { NotifyClient } from './api.ts';
import { NOTIFY_PATHS } from './methods.ts';

const NOTIFY_INFO: InfoService = {
  protocol: 'notify',
  path: NOTIFY_PATHS.info,
  decodeVersions: (bytes) => NotifyInfoResponse.decode(bytes).supportedNotifyVersions,
};

/** @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go */
const EVENT_TIMEOUT_MS = 5_000;
const DOMAIN_EVENT_TEXTS: ErrorTexts = {
  call: (rendered) => rendered,
  answer: (message) => `failed to notify domain event: ${message}`,
};
const K8S_EVENT_TEXTS: ErrorTexts = {
  call: (rendered) => rendered,
  answer: (message) => `failed to notify k8s event: ${message}`,
};

/**
 * Connects to a notify socket, as a launcher does: dial within 2 s, version check within 5 s.
 *
 * @throws {ProtoError} `DialFailed`, `VersionCheckFailed`, `NoCommonVersion`, `VersionUnsupported` or `Aborted`.
 */
export async function connectNotify(socketPath: string, options: ConnectOptions = {}): Promise<NotifyClient> {
  const { channel, version } = await connect(socketPath, NOTIFY_INFO, options);
  const close = (): void => channel[Symbol.dispose]();
  return {
    socketPath,
    version,
    handleDomainEvent: (event, call) => {
      const bytes = DomainEventRequest.encode(DomainEventRequest.fromPartial(event)).finish();
      return send(channel, NOTIFY_PATHS.domainEvent, bytes, DOMAIN_EVENT_TEXTS, call);
    },
    handleK8sEvent: (event, call) => {
      const bytes = K8sEventRequest.encode(K8sEventRequest.fromPartial(event)).finish();
      return send(channel, NOTIFY_PATHS.k8sEvent, bytes, K8S_EVENT_TEXTS, call);
    },
    onConnectionLost: (listener) => channel.onLost(listener),
    close,
    [Symbol.dispose]: close,
  };
}

async function send(
  channel: UnixChannel,
  path: string,
  bytes: Uint8Array,
  texts: ErrorTexts,
  options: CallOptions = {},
): Promise<CallResult<Response>> {
  const timeoutMs = options.timeoutMs ?? EVENT_TIMEOUT_MS;
  const result = await channel.call(path, bytes, { timeoutMs, signal: options.signal });
  if (!result.ok) return { ok: false, error: callError(result.failure, texts) };
  try {
    const value = Response.decode(result.bytes);
    return value.success ? { ok: true, value } : { ok: false, error: answerError(value.message, texts), answer: value };
  } catch (caught) {
    return { ok: false, error: decodeError(caught, texts) };
  }
}
