import { cmdV1, notifyV1 } from '@virtwire/shared-proto';
import type { SideUnderTest } from '../cell.ts';
import type { RawAnswer } from '../emulate/transport/grpc-client.ts';
import type { RelayOptions } from './relay.ts';
import type { ReleaseLine } from '../release-line.ts';
import { dropField, renumberField } from './protocol.ts';

/** A fault that is put into our side on purpose, and the cell that must notice it. */
export interface Mutant {
  readonly name: string;
  readonly side: SideUnderTest;
  readonly cmd?: RelayOptions;
  readonly notify?: RelayOptions;
  readonly killedBy: { readonly scenario: string; readonly line: ReleaseLine };
}

const CMD = '/kubevirt.cmd.v1.Cmd/';
const DOMAIN_EVENT = '/kubevirt.notify.v1.Notify/HandleDomainEvent';
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/** Changes the domain JSON of events. */
function inEvents(change: (json: string) => string): RelayOptions {
  return {
    changeRequest(path, bytes) {
      if (path !== DOMAIN_EVENT) return bytes;
      const event = notifyV1.DomainEventRequest.decode(bytes);
      const domainJSON = Buffer.from(change(text(event.domainJSON)));
      return notifyV1.DomainEventRequest.encode({ ...event, domainJSON }).finish();
    },
  };
}

/** Changes the answers of one RPC. */
function inAnswers(rpc: string, change: (bytes: Uint8Array) => Uint8Array): RelayOptions {
  return {
    changeAnswer: (path, answer) =>
      path === CMD + rpc && answer.code === 0 ? { ...answer, bytes: change(answer.bytes) } : answer,
  };
}

/** Changes the requests of one RPC. */
function inRequests(rpc: string, change: (bytes: Uint8Array) => Uint8Array): RelayOptions {
  return { changeRequest: (path, bytes) => (path === CMD + rpc ? change(bytes) : bytes) };
}

function withoutDisksInfo(bytes: Uint8Array): Uint8Array {
  const { vmi, options } = cmdV1.VMIRequest.decode(bytes);
  const kept = { ...cmdV1.VirtualMachineOptions.fromPartial(options ?? {}), DisksInfo: new Map() };
  return cmdV1.VMIRequest.encode(cmdV1.VMIRequest.fromPartial({ vmi, options: kept })).finish();
}

function asGrpcError(path: string, answer: RawAnswer): RawAnswer {
  if (answer.code !== 0 || path !== `${CMD}SyncVirtualMachine`) return answer;
  const { success, message } = cmdV1.Response.decode(answer.bytes);
  return success ? answer : { code: 2, details: message, bytes: new Uint8Array() };
}

function refuseAcpiObject(path: string, bytes: Uint8Array): string | undefined {
  if (path !== DOMAIN_EVENT) return undefined;
  const isObject = text(notifyV1.DomainEventRequest.decode(bytes).domainJSON).includes('"Table":{');
  return isObject ? 'json: cannot unmarshal object into Go struct field ACPI.Table' : undefined;
}

/** Every fault, each with the cell that kills it. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'the handler drops the options of a sync',
    side: 'handler',
    cmd: inRequests('SyncVirtualMachine', (bytes) => dropField(bytes, 2)),
    killedBy: { scenario: 'first-start', line: 'v1.6' },
  },
  {
    name: 'the launcher drops the domain of GetDomain',
    side: 'launcher',
    cmd: inAnswers('GetDomain', (bytes) => dropField(bytes, 2)),
    killedBy: { scenario: 'notify-loss', line: 'v1.4' },
  },
  {
    name: 'the handler sends the VMI under another field number',
    side: 'handler',
    cmd: inRequests('SyncVirtualMachine', (bytes) => renumberField(bytes, 1, 9)),
    killedBy: { scenario: 'first-start', line: 'v1.0' },
  },
  {
    name: 'the launcher answers with another field number',
    side: 'launcher',
    cmd: inAnswers('PauseVirtualMachine', (bytes) => renumberField(bytes, 1, 9)),
    killedBy: { scenario: 'pause', line: 'v1.3' },
  },
  {
    name: 'the handler does not fall back to the old shape of ACPI tables',
    side: 'handler',
    notify: {
      refuse: ({ path, request }) => {
        const message = refuseAcpiObject(path, request);
        const answer = (): Uint8Array => notifyV1.Response.encode({ success: false, message: message ?? '' }).finish();
        return message === undefined ? undefined : { code: 0, details: '', bytes: answer() };
      },
    },
    killedBy: { scenario: 'acpi-tables', line: 'v1.3' },
  },
  {
    name: 'the handler does not tell old launchers about images',
    side: 'handler',
    cmd: inRequests('SyncVirtualMachine', withoutDisksInfo),
    killedBy: { scenario: 'container-disk', line: 'v1.5' },
  },
  {
    name: 'the handler takes an RPC that is not implemented for a broken connection',
    side: 'handler',
    cmd: { changeAnswer: (_path, answer) => (answer.code === 12 ? { ...answer, code: 14 } : answer) },
    killedBy: { scenario: 'requests', line: 'v1.1' },
  },
  {
    name: 'the launcher answers a gRPC error instead of success=false',
    side: 'launcher',
    cmd: { changeAnswer: asGrpcError },
    killedBy: { scenario: 'bad-requests', line: 'v1.2' },
  },
  {
    name: 'the launcher prints a null Alias',
    side: 'launcher',
    notify: inEvents((json) => json.replace(/"Alias":\{[^}]*\}/g, '"Alias":null')),
    killedBy: { scenario: 'first-start', line: 'v1.7' },
  },
  {
    name: 'the launcher does not normalise authorities',
    side: 'launcher',
    cmd: { takesAnyAuthority: false },
    killedBy: { scenario: 'first-start', line: 'v1.0' },
  },
  {
    name: 'the launcher reports a domain status of a newer release',
    side: 'launcher',
    notify: inEvents((json) => json.replace('"Status":"Running"', '"Status":"Hibernated"')),
    killedBy: { scenario: 'first-start', line: 'v1.5' },
  },
  {
    name: 'the launcher prints keys in the wrong case',
    side: 'launcher',
    notify: inEvents((json) => json.replace('"Status":{', '"status":{').replace('"Spec":{', '"spec":{')),
    killedBy: { scenario: 'first-start', line: 'v1.9' },
  },
];
