import { ProtoError } from '../errors.ts';
import type { VMIRequest, VirtualMachineOptions } from '../gen/kubevirt/cmd/v1/cmd.ts';
import type { DeepPartial } from '../gen/kubevirt/cmd/v1/cmd.ts';
import { isJsonNull } from '../json-check.ts';
import { type CmdRequest, type CmdRequestInit, type CmdRpc, rpcInfo } from './rpcs.ts';

/** VMIRequests that KubeVirt's handler sends without `options`. */
const WITHOUT_OPTIONS: readonly CmdRpc[] = ['GetLaunchMeasurement', 'GetScreenshot'];
/** RPCs whose request is a VMIRequest are those with an `options` message; others have bytes there. */
interface OptionsHolder {
  options?: unknown;
}
interface VmiHolder {
  vmi?: unknown;
}

/**
 * Renders a VMIRequest.
 *
 * @param vmi the VMI as JSON.
 */
export function vmiRequest(
  vmi: string | Uint8Array,
  options: DeepPartial<VirtualMachineOptions> = {},
): DeepPartial<VMIRequest> {
  return { vmi: { vmiJson: typeof vmi === 'string' ? Buffer.from(vmi) : vmi }, options };
}

/**
 * Completes a request so that no launcher written in Go crashes on it: `vmi`, and where KubeVirt's handler sends it
 * `options`, are always present.
 *
 * @returns an error for what cannot be completed.
 * @source wire rules 3 and 11: requests that crash a Go launcher
 */
export function buildRequest<R extends CmdRpc>(
  rpc: R,
  init: CmdRequestInit<R> | undefined,
): CmdRequest<R> | ProtoError {
  const { request } = rpcInfo(rpc);
  const message = request.fromPartial((init ?? {}) as Parameters<typeof request.fromPartial>[0]);
  completeVmi(message as VmiHolder);
  completeOptions(rpc, message as OptionsHolder);
  return findFault(rpc, message) ?? message;
}

function completeVmi(message: VmiHolder): void {
  if ('vmi' in message) message.vmi ??= { vmiJson: new Uint8Array(0) };
}

function completeOptions(rpc: CmdRpc, message: OptionsHolder): void {
  if (!('options' in message) || message.options !== undefined || WITHOUT_OPTIONS.includes(rpc)) return;
  message.options = rpcInfo('SyncVirtualMachine').request.fromPartial({ options: {} }).options;
}

function findFault(rpc: CmdRpc, message: object): ProtoError | undefined {
  if (rpc === 'Exec' && 'timeoutSeconds' in message && Number(message.timeoutSeconds) < 1) {
    return new ProtoError('BadRequest', 'Exec needs a timeout of at least one second');
  }
  if ('options' in message && message.options instanceof Uint8Array && isJsonNull(message.options)) {
    return new ProtoError('BadRequest', `${rpc} must not carry null as its options`);
  }
  return undefined;
}
