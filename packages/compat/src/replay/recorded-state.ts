import { cmdV1, notifyV1 } from '@virtwire/shared-proto';
import type { Capture } from './captures.ts';

/** What is known of a recorded VM at some point of its scenario. */
export interface RecordedState {
  /** Status of the domain; `none` before it is there and after it is gone. */
  readonly domain: string;
  readonly hasAgent: boolean;
}

/** Before the first call that tells anything: a recording may begin while its VM runs. */
export const UNKNOWN_STATE: RecordedState = { domain: 'none', hasAgent: false };
const NOTHING: RecordedState = { domain: 'none', hasAgent: false };

/** RPCs that only succeed with a domain. */
const NEED_DOMAIN =
  /\/(Pause|Unpause|Freeze|Unfreeze|Reset|SoftReboot|Migrate)VirtualMachine$|\/(GetScreenshot|VirtualMachineMemoryDump|SyncVirtualMachine(CPUs|Memory))$/;

const bytesOf = (base64: string | undefined): Buffer => Buffer.from(base64 ?? '', 'base64');

/** The state before a call, as far as its answer shows it: an agent that answers is there, and so is a VM that is paused. */
export function stateBefore(before: RecordedState, capture: Capture): RecordedState {
  const { method, grpcStatus } = capture;
  const mayRun = before === UNKNOWN_STATE && NEED_DOMAIN.test(method) && hasSucceeded(capture);
  if (mayRun) return { domain: 'Running', hasAgent: /\/(Freeze|Unfreeze)/.test(method) };
  const isFrozenByAgent = /\/(Freeze|Unfreeze)VirtualMachine$/.test(method) && hasSucceeded(capture);
  const isOfAgent = /\/(GuestPing|Exec)$/.test(method) || isFrozenByAgent;
  const hasAnswered =
    grpcStatus.code === 0 || /guest agent command failed|guest pid|parse JSON/.test(grpcStatus.message);
  return isOfAgent && hasAnswered && before.domain === 'Running' ? { ...before, hasAgent: true } : before;
}

function hasSucceeded({ grpcStatus, response }: Capture): boolean {
  if (grpcStatus.code !== 0 || response === undefined) return false;
  try {
    const bytes = bytesOf(response.base64);
    const isPlain = response.type.endsWith('.Response');
    return isPlain
      ? cmdV1.Response.decode(bytes).success
      : cmdV1.DomainResponse.decode(bytes).response?.success === true;
  } catch {
    return false;
  }
}

/** The state after a call, as far as the call shows it. */
export function stateAfter(before: RecordedState, capture: Capture): RecordedState {
  try {
    return read(before, capture);
  } catch {
    // What cannot be decoded is told of the bytes, and shows nothing.
    return before;
  }
}

function read(before: RecordedState, { method, grpcStatus, request, response }: Capture): RecordedState {
  if (grpcStatus.code !== 0) return before;
  switch (method) {
    case '/kubevirt.notify.v1.Notify/HandleDomainEvent':
      return withDomain(
        before,
        Buffer.from(notifyV1.DomainEventRequest.decode(bytesOf(request.base64)).domainJSON).toString(),
      );
    case '/kubevirt.cmd.v1.Cmd/GetDomain':
      return withDomain(before, cmdV1.DomainResponse.decode(bytesOf(response?.base64)).domain);
    case '/kubevirt.cmd.v1.Cmd/GetGuestInfo': {
      const info = cmdV1.GuestInfoResponse.decode(bytesOf(response?.base64)).guestInfoResponse;
      const { guestAgentVersion = '' } = JSON.parse(info) as { readonly guestAgentVersion?: string };
      return { ...before, hasAgent: guestAgentVersion !== '' };
    }
    case '/kubevirt.cmd.v1.Cmd/SyncVirtualMachine':
      return before.domain === 'none' && succeeded(response?.base64) ? { ...before, domain: 'Running' } : before;
    case '/kubevirt.cmd.v1.Cmd/PauseVirtualMachine':
      return before.domain === 'Running' && succeeded(response?.base64) ? { ...before, domain: 'Paused' } : before;
    case '/kubevirt.cmd.v1.Cmd/UnpauseVirtualMachine':
      return before.domain === 'Paused' && succeeded(response?.base64) ? { ...before, domain: 'Running' } : before;
    case '/kubevirt.cmd.v1.Cmd/KillVirtualMachine':
      return before.domain !== 'none' && succeeded(response?.base64) ? { domain: 'Shutoff', hasAgent: false } : before;
    case '/kubevirt.cmd.v1.Cmd/DeleteVirtualMachine':
      return succeeded(response?.base64) ? NOTHING : before;
    default:
      return before;
  }
}

const succeeded = (base64: string | undefined): boolean => cmdV1.Response.decode(bytesOf(base64)).success;

function withDomain(before: RecordedState, json: string): RecordedState {
  if (json === '') return NOTHING;
  const { Status } = JSON.parse(json) as { readonly Status?: { readonly Status?: string; readonly Reason?: string } };
  const domain = Status?.Status ?? '';
  if (domain === '' || Status?.Reason === 'NonExistent') return NOTHING;
  return { domain, hasAgent: before.hasAgent && domain === 'Running' };
}
