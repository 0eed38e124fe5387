import { EMBEDDED, type EmbeddedField } from '@virtwire/vm-model/payloads';
import { parseDomainJson } from '@virtwire/vm-model';
import type { Fields } from '../emulate/schema/release-schema.ts';
import { dialGrpc, knock } from '../emulate/transport/grpc-client.ts';
import type { Findings } from './findings.ts';
import type { ProbePeer } from './peer.ts';
import { CODE } from './peer.ts';
import { runStep, runSteps, type Step } from './steps.ts';

/** Who the VM of a launcher is, as far as it tells. */
export interface KnownVm {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** As the launcher says. */
  readonly status: string;
}

const CMD_INFO = '/kubevirt.cmd.info.CmdInfo/Info';
const PING = '/kubevirt.cmd.v1.Cmd/Ping';
const LIMIT_MS = 5_000;
const ANY_TEXT = /./;
/** The authority of handlers before v1.1. @source wire.md 2, The authority trap */
const OLD_AUTHORITY = '/var/run/kubevirt/sockets/launcher-sock';

/** What is wrong with a document of an answer. An empty one may be all right, if it is said so. */
const document =
  (field: EmbeddedField, mayBeEmpty = false) =>
  (fields: Fields): string | undefined => {
    const content = fields[field.slice(field.indexOf('.') + 1)];
    const text = content instanceof Uint8Array ? Buffer.from(content).toString('utf8') : content;
    if (typeof text !== 'string' || text === '') return mayBeEmpty ? undefined : `its ${field} is empty`;
    try {
      EMBEDDED[field].parse(text);
      return undefined;
    } catch (caught) {
      return `its ${field} cannot be read: ${caught instanceof Error ? caught.message : String(caught)}`;
    }
  };

const hasVersion = ({ version }: Fields): string | undefined =>
  typeof version === 'string' && version !== '' ? undefined : 'it succeeds without a version';

const hasPicture = ({ mime, data }: Fields): string | undefined =>
  typeof mime === 'string' && mime.startsWith('image/') && data instanceof Uint8Array && data.length > 0
    ? undefined
    : 'it succeeds without a picture';

/** RPCs that only ask and are about no VM in particular. @source wire.md 6, Queries */
const QUERIES: readonly Step[] = [
  { rpc: 'Ping', label: 'asked', expect: 'success' },
  { rpc: 'GetQemuVersion', label: 'asked', expect: 'success', verify: hasVersion },
  { rpc: 'GetSEVInfo', label: 'asked', expect: { mayRefuse: ANY_TEXT }, verify: document('SEVInfoResponse.sevInfo') },
  {
    ...{ rpc: 'GetGuestInfo', label: 'asked', expect: 'success' },
    verify: document('GuestInfoResponse.guestInfoResponse'),
  },
  {
    ...{ rpc: 'GetUsers', label: 'asked', expect: 'success' },
    verify: document('GuestUserListResponse.guestUserListResponse'),
  },
  {
    ...{ rpc: 'GetFilesystems', label: 'asked', expect: 'success' },
    verify: document('GuestFilesystemsResponse.guestFilesystemsResponse'),
  },
];

/** Questions whose answers depend on whether there is a domain. @source wire.md 6, Queries; 10.4 for older ones */
export const stateQueries = (label: string, hasDomain: boolean): readonly Step[] => [
  {
    ...{ rpc: 'GetDomainStats', label },
    expect: hasDomain ? 'success' : { mayRefuse: /^empty DomainStats$/ },
    verify: document('DomainStatsResponse.domainStats', !hasDomain),
  },
  { rpc: 'GetVMStats', label, expect: { mayRefuse: ANY_TEXT } },
];

/** Questions about a VM, which have no effect on it. */
export const vmQueries = (label: string, vmi: Fields): readonly Step[] => [
  { rpc: 'GetScreenshot', label, request: vmi, expect: { mayRefuse: ANY_TEXT }, verify: hasPicture },
  {
    ...{ rpc: 'GetLaunchMeasurement', label, request: vmi, expect: { mayRefuse: ANY_TEXT } },
    verify: document('LaunchMeasurementResponse.launchMeasurement'),
  },
];

/** Asks for the domain. @returns undefined when there is none, `unknown` when the launcher does not say. */
export async function askDomain(
  peer: ProbePeer,
  findings: Findings,
  label: string,
): Promise<KnownVm | 'unknown' | undefined> {
  let known: KnownVm | undefined;
  const verify = (fields: Fields): string | undefined => {
    const text = fields['domain'];
    if (typeof text !== 'string' || text === '') return undefined;
    const problem = document('DomainResponse.domain')(fields);
    if (problem !== undefined) return problem;
    const { ObjectMeta, Status, Spec } = parseDomainJson(text);
    const { namespace = '', name = '', uid = '' } = ObjectMeta;
    known = { namespace, name, uid: Spec.Metadata.KubeVirt.UID ?? uid, status: Status.Status ?? '' };
    return nullThatCrashes(text);
  };
  const answer = await runStep(peer, findings, { rpc: 'GetDomain', label, expect: 'success', verify });
  return answer?.outcome?.success === true ? known : 'unknown';
}

/** Handlers written in Go crash over an interface with a null alias or MAC. @source domain-json.md 5; wire.md 11 */
function nullThatCrashes(text: string): string | undefined {
  const { Spec } = JSON.parse(text) as { readonly Spec?: { readonly Devices?: { readonly Interfaces?: unknown } } };
  const interfaces = Spec?.Devices?.Interfaces;
  const list = (Array.isArray(interfaces) ? interfaces : []) as readonly Readonly<Record<string, unknown>>[];
  const isBad = list.some(({ Alias, MAC }) => Alias === null || MAC === null);
  return isBad ? 'an interface has a null Alias or MAC, over which handlers crash' : undefined;
}

/** The version handshake, of one service. */
export async function askInfo(peer: ProbePeer, findings: Findings, path: string): Promise<void> {
  const { code, details, bytes } = await peer.callRaw(path, new Uint8Array(), LIMIT_MS);
  const hex = Buffer.from(bytes).toString('hex');
  if (code !== CODE.ok) findings.bad('Info', `it answers gRPC code ${code}: ${details}`);
  else if (hex === '0a0101') findings.good('Info', 'version 1');
  else findings.bad('Info', `it offers other versions than 1: ${hex === '' ? 'none' : hex}`);
}

/** What every peer does with calls that are none of the contract. @source wire.md 2 */
export async function askNonsense(peer: ProbePeer, findings: Findings, service: string, empty: string): Promise<void> {
  const cases: readonly (readonly [what: string, path: string, bytes: Uint8Array, code: number])[] = [
    ['(unknown method)', `/${service}/NoSuchMethod`, new Uint8Array(), CODE.unimplemented],
    ['(unknown service)', `/${service}2/Ping`, new Uint8Array(), CODE.unimplemented],
    ['(bytes that are no message)', empty, Buffer.from('0affffffff0f', 'hex'), CODE.internal],
  ];
  for (const [what, path, bytes, expected] of cases) {
    const { code, details } = await peer.callRaw(path, bytes, LIMIT_MS);
    if (code === expected) findings.good(what, `refused: ${details}`);
    else findings.bad(what, `it answers gRPC code ${code} instead of ${expected}: ${details}`);
  }
}

/** What handlers of old releases do on a connection, and none of them may be refused. @source wire.md 1, 2 */
async function askOldHabits(socket: string, findings: Findings): Promise<void> {
  for (let i = 0; i < 3; i += 1) await knock(socket);
  try {
    using connection = await dialGrpc(socket, { authority: OLD_AUTHORITY, userAgent: 'grpc-go/1.49.0' });
    const { code, details } = await connection.call(CMD_INFO, new Uint8Array(), LIMIT_MS);
    if (code === CODE.ok) findings.good('(handlers before v1.1)', 'a path as authority is taken');
    else findings.bad('(handlers before v1.1)', `a path as authority breaks calls: code ${code}, ${details}`);
  } catch (caught) {
    findings.bad('(handlers before v1.1)', `it takes no second connection: ${String(caught)}`);
  }
}

/** Asks for everything that changes nothing. @returns the VM of the launcher, if there is a domain. */
export async function askQuestions(peer: ProbePeer, socket: string, findings: Findings): Promise<KnownVm | undefined> {
  await askInfo(peer, findings, CMD_INFO);
  await askNonsense(peer, findings, 'kubevirt.cmd.v1.Cmd', PING);
  await askOldHabits(socket, findings);
  await runSteps(peer, findings, QUERIES);
  const told = await askDomain(peer, findings, 'asked');
  const known = told === 'unknown' ? undefined : told;
  const label = known === undefined ? 'without a domain' : `domain ${known.status}`;
  await runSteps(peer, findings, stateQueries(label, known !== undefined));
  if (known !== undefined) await runSteps(peer, findings, vmQueries(label, vmRequest(known)));
  return known;
}

/** A request about a VM of which only the names are known. */
function vmRequest({ namespace, name, uid }: KnownVm): Fields {
  const vmi = { metadata: { namespace, name, uid }, spec: { domain: { devices: {} } } };
  return { vmi: { vmiJson: JSON.stringify(vmi) } };
}
