import { CMD_RPC_NAMES, CMD_RPCS, cmdV1, notifyV1 } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';
import type { Capture } from './captures.ts';

/** A decoded message, field by field. */
type Fields = Readonly<Record<string, unknown>>;

const CMD_PREFIX = '/kubevirt.cmd.v1.Cmd/';
/** VMIRequests that handlers send without options. @source wire.md 5 */
const WITHOUT_OPTIONS: readonly string[] = ['GetLaunchMeasurement', 'GetScreenshot'];
const NO_VMI = 'No valid vmi object present';
const INFO_HEX = '0a0101';
const EVENT_TYPES: readonly string[] = ['ADDED', 'MODIFIED', 'DELETED', 'ERROR'];
/** What other requests cannot be without. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  Exec: ['domainName', 'Command'],
  GuestPing: ['domainName'],
  VirtualMachineMemoryDump: ['dumpPath'],
  MigrateVirtualMachine: ['options'],
  BackupVirtualMachine: ['options'],
};

/** What a successful answer cannot be without, by RPC. @source wire.md 6, Queries */
const CONTENT: Readonly<Record<string, readonly string[]>> = {
  GetQemuVersion: ['version'],
  GetGuestInfo: ['guestInfoResponse'],
  GetUsers: ['guestUserListResponse'],
  GetFilesystems: ['guestFilesystemsResponse'],
  GetSEVInfo: ['sevInfo'],
  GetLaunchMeasurement: ['launchMeasurement'],
  GetScreenshot: ['mime', 'data'],
};

const isRpc = (name: string): name is CmdRpc => (CMD_RPC_NAMES as readonly string[]).includes(name);
const bytesOf = (base64: string | undefined): Buffer => Buffer.from(base64 ?? '', 'base64');

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === '' || (value instanceof Uint8Array && value.length === 0);

/** What in a call no peer of any release does, whatever the state of its VM: it was damaged, or is no recording. */
export function contractProblems(capture: Capture): readonly string[] {
  const { method, grpcStatus, request, response } = capture;
  const rpc = method.slice(method.lastIndexOf('/') + 1);
  if (grpcStatus.code !== 0 || response === undefined) return [];
  try {
    const answered = rpc === 'Info' ? infoProblems(bytesOf(response.base64)) : answerProblems(capture, rpc);
    // What a record shows was sent, if only by a test.
    return request.protobufJSON === undefined ? [...answered, ...omissions(capture, rpc)] : answered;
  } catch {
    // What cannot be decoded is told of the bytes.
    return [];
  }
}

const infoProblems = (bytes: Buffer): readonly string[] =>
  bytes.toString('hex') === INFO_HEX ? [] : ['it does not offer version 1, as every release does'];

function answerProblems({ channel, method, request, response }: Capture, rpc: string): readonly string[] {
  if (channel === 'notify') return refusalProblems(notifyV1.Response.decode(bytesOf(response?.base64)));
  if (!method.startsWith(CMD_PREFIX) || !isRpc(rpc)) return [];
  const answer = CMD_RPCS[rpc].response.decode(bytesOf(response?.base64)) as unknown as Fields;
  const isPlain = CMD_RPCS[rpc].response === (cmdV1.Response as unknown);
  const outcome = (isPlain ? answer : answer['response']) as cmdV1.Response | undefined;
  if (outcome === undefined) return ['the answer does not say whether it succeeded'];
  const asked = CMD_RPCS[rpc].request.decode(bytesOf(request.base64)) as unknown as Fields;
  const isAboutVmi = outcome.message.startsWith(NO_VMI) || rpc === 'InjectLaunchSecret';
  const vmi = isAboutVmi ? [] : vmiProblems(asked);
  return [...vmi, ...(outcome.success ? contentProblems(rpc, answer) : refusalProblems(outcome))];
}

function refusalProblems({ success, message }: cmdV1.Response): readonly string[] {
  return success || message !== '' ? [] : ['it is refused without a text'];
}

function contentProblems(rpc: string, answer: Fields): readonly string[] {
  const missing = (CONTENT[rpc] ?? []).filter((field) => isEmpty(answer[field]));
  return missing.map((field) => `it succeeds without ${field}`);
}

/** What a launcher refuses, or crashes over. */
function vmiProblems(asked: Fields): readonly string[] {
  if (!('vmi' in asked)) return [];
  const vmi = asked['vmi'] as { readonly vmiJson: Uint8Array } | undefined;
  if (vmi === undefined) return ['it is answered without a VMI, over which launchers crash'];
  return isEmpty(vmi.vmiJson) ? ['it is taken with an empty VMI, which launchers refuse'] : [];
}

/** What handlers and launchers never leave out of a request. */
function omissions({ method, request }: Capture, rpc: string): readonly string[] {
  if (method === '/kubevirt.notify.v1.Notify/HandleDomainEvent') {
    return eventOmissions(notifyV1.DomainEventRequest.decode(bytesOf(request.base64)));
  }
  if (!method.startsWith(CMD_PREFIX) || !isRpc(rpc)) return [];
  const asked = CMD_RPCS[rpc].request.decode(bytesOf(request.base64)) as unknown as Fields;
  const isVmiRequest = CMD_RPCS[rpc].request === (cmdV1.VMIRequest as unknown);
  const needed = isVmiRequest && !WITHOUT_OPTIONS.includes(rpc) ? ['options'] : (NEEDED[rpc] ?? []);
  return needed
    .filter((field) => isEmpty(asked[field]))
    .map((field) => `it has no ${field}, which handlers always send`);
}

function eventOmissions({ eventType, domainJSON, statusJSON }: notifyV1.DomainEventRequest): readonly string[] {
  if (!EVENT_TYPES.includes(eventType)) return [`an event of the type "${eventType}", which no launcher sends`];
  const isEmptyEvent = isEmpty(eventType === 'ERROR' ? statusJSON : domainJSON);
  return isEmptyEvent ? [`an event ${eventType} without its document`] : [];
}
