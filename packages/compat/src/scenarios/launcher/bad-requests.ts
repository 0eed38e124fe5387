import { CMD_RPC_NAMES, cmdV1 } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';
import type { CellResult } from '../../cell.ts';
import { dialGrpc } from '../../emulate/transport/grpc-client.ts';
import type { GrpcConnection, RawAnswer } from '../../emulate/transport/grpc-client.ts';
import { factsOf } from '../../emulate/lines/lines.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { checkPeace } from './peace.ts';

const CMD = '/kubevirt.cmd.v1.Cmd/';
const CALL_LIMIT_MS = 5_000;
const NO_VMI = 'No valid vmi object present in command server request';
const NO_MIGRATION_OPTIONS = 'migration options object not present in command server request';

/** gRPC's codes. */
const OK = 0;
const UNKNOWN = 2;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;

type Bytes = Uint8Array<ArrayBuffer>;

const encodeVmi = (vmiJson: string): Bytes => encode({ vmi: { vmiJson: Buffer.from(vmiJson) }, options: {} });

/** The VMI alone: field 1 of every request that has one. */
const encodeVmiOnly = (vmiJson: string): Bytes => encode({ vmi: { vmiJson: Buffer.from(vmiJson) } });

function encode(request: Parameters<typeof cmdV1.VMIRequest.fromPartial>[0]): Bytes {
  return Uint8Array.from(cmdV1.VMIRequest.encode(cmdV1.VMIRequest.fromPartial(request)).finish());
}

/** RPCs without a VMI. */
const WITHOUT_VMI: readonly CmdRpc[] = [
  ...(['Ping', 'GetDomain', 'GetDomainStats', 'GetGuestInfo', 'GetUsers', 'GetFilesystems', 'Exec'] as const),
  ...(['GuestPing', 'GetQemuVersion', 'GetSEVInfo', 'GetDomainDirtyRateStats', 'GetVMStats'] as const),
];

/** Answers whose outcome is a message of its own, in field 1. */
const NESTED: readonly CmdRpc[] = ['GetLaunchMeasurement', 'GetScreenshot', 'RedefineCheckpoint'];

/** VMIs that Go's decoder refuses, each as a whole. */
const BROKEN_VMIS: readonly (readonly [what: string, bytes: Bytes])[] = [
  ['no message vmi', new Uint8Array()],
  ['an empty VMI', encodeVmiOnly('')],
  ['half a VMI', encodeVmiOnly('{"metadata":')],
  ['a list for a VMI', encodeVmiOnly('[]')],
  ['a number for a VMI', encodeVmiOnly('7')],
  ['a list for metadata', encodeVmiOnly('{"metadata":[]}')],
  ['a number for a name', encodeVmiOnly('{"metadata":{"name":7}}')],
  ['a text for a number of cores', encodeVmiOnly('{"spec":{"domain":{"cpu":{"cores":"two"}}}}')],
  ['an object for a list of volumes', encodeVmiOnly('{"spec":{"volumes":{}}}')],
  ['a number for a phase', encodeVmiOnly('{"status":{"phase":1}}')],
];

/** The outcome of an answer: the answer itself, or its field 1. */
function outcomeOf(rpc: CmdRpc, bytes: Uint8Array): cmdV1.Response {
  if (!NESTED.includes(rpc)) return cmdV1.Response.decode(bytes);
  // Field 1 is the same in all of them.
  return cmdV1.DomainResponse.decode(bytes).response ?? { success: true, message: '' };
}

function checkRefusal(rpc: CmdRpc, what: string, { code, details, bytes }: RawAnswer, words: string): void {
  check(code === OK, `${rpc} with ${what} was answered with gRPC code ${code} (${details}), not with success=false`);
  const { success, message } = outcomeOf(rpc, bytes);
  check(!success, `${rpc} with ${what} succeeded`);
  check(message === words, `${rpc} with ${what} was refused with: ${message}`);
}

async function refusesBrokenVmis(connection: GrpcConnection): Promise<void> {
  for (const rpc of CMD_RPC_NAMES.filter((name) => !WITHOUT_VMI.includes(name))) {
    for (const [what, vmi] of BROKEN_VMIS) {
      // The options of a migration are in order, so that it is refused for its VMI alone.
      const bytes = rpc === 'MigrateVirtualMachine' ? Buffer.concat([vmi, Buffer.from('12027b7d', 'hex')]) : vmi;
      checkRefusal(rpc, what, await connection.call(CMD + rpc, bytes, CALL_LIMIT_MS), NO_VMI);
    }
  }
}

interface Trap {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** The gRPC code that the answer has to have. */
  readonly code: number;
  /** The words of the failure, if they are known. */
  readonly words?: string;
}

function exec(timeoutSeconds: number, domainName: string): Uint8Array {
  return cmdV1.ExecRequest.encode(
    cmdV1.ExecRequest.fromPartial({ domainName, Command: 'ls', timeoutSeconds }),
  ).finish();
}

/** What crashes a launcher written in Go, and what failures travel as gRPC errors. @source KubeVirt wire.md 2, 11 */
function traps(vmiJson: string): readonly Trap[] {
  const vmi = encodeVmi(vmiJson);
  const vmiOnly = encodeVmiOnly(vmiJson);
  const nullOptions = Buffer.concat([vmiOnly, Buffer.from('12046e756c6c', 'hex')]);
  const ping = cmdV1.GuestPingRequest.encode(
    cmdV1.GuestPingRequest.fromPartial({ domainName: 'ns1_vm1', timeoutSeconds: 1 }),
  ).finish();
  const plain = (rpc: string, bytes: Uint8Array, code: number, words?: string): Trap => ({
    ...{ path: CMD + rpc, bytes, code },
    ...(words === undefined ? {} : { words }),
  });
  return [
    plain('Exec', exec(0, 'ns1_vm1'), UNKNOWN),
    plain('Exec', exec(1, 'no_domain'), UNKNOWN),
    plain('GuestPing', ping, UNKNOWN),
    plain('GetVMStats', new Uint8Array(), UNKNOWN, 'VMStatsCollector feature gate is not enabled'),
    plain('MigrateVirtualMachine', vmiOnly, OK, NO_MIGRATION_OPTIONS),
    plain('MigrateVirtualMachine', nullOptions, OK),
    plain('SyncVirtualMachineMemory', vmi, OK),
    plain('FinalizeVirtualMachineMigration', vmiOnly, OK),
    plain('BackupVirtualMachine', nullOptions, OK),
    plain('SyncVirtualMachine', Buffer.from('0affffffff0f', 'hex'), INTERNAL),
    plain('NoSuchMethod', new Uint8Array(), UNIMPLEMENTED),
    { path: '/kubevirt.cmd.v2.Cmd/Ping', bytes: new Uint8Array(), code: UNIMPLEMENTED },
  ];
}

async function survivesTraps(scene: LauncherScene, connection: GrpcConnection): Promise<void> {
  for (const { path, bytes, code, words } of traps(JSON.stringify(scene.vmi))) {
    const answer = await connection.call(path, bytes, CALL_LIMIT_MS);
    scene.note(`${path}: code ${answer.code} ${answer.details}`);
    check(answer.code === code, `${path} was answered with code ${answer.code} (${answer.details}), not ${code}`);
    if (words === undefined) continue;
    const told = code === OK ? cmdV1.Response.decode(answer.bytes).message : answer.details;
    check(told === words, `${path} was refused with: ${told}`);
  }
}

/** What a launcher says while it has no domain. @source KubeVirt wire.md 6 */
async function answersWithoutDomain(scene: LauncherScene, connection: GrpcConnection): Promise<void> {
  const vmi = encodeVmi(JSON.stringify(scene.vmi));
  const ask = (rpc: CmdRpc, bytes = new Uint8Array()): Promise<RawAnswer> =>
    connection.call(CMD + rpc, bytes, CALL_LIMIT_MS);
  for (const rpc of ['PauseVirtualMachine', 'UnpauseVirtualMachine'] as const) {
    checkRefusal(rpc, 'a VM that was never started', await ask(rpc, vmi), 'Domain not found.');
  }
  for (const rpc of ['ShutdownVirtualMachine', 'KillVirtualMachine', 'DeleteVirtualMachine'] as const) {
    const answer = await ask(rpc, vmi);
    const isDone = answer.code === OK && cmdV1.Response.decode(answer.bytes).success;
    check(isDone, `${rpc} of a VM that was never started failed`);
  }
  const { response, domain } = cmdV1.DomainResponse.decode((await ask('GetDomain')).bytes);
  check(response?.success === true && domain === '', `GetDomain without a domain answers: ${domain}`);
  const stats = cmdV1.DomainStatsResponse.decode((await ask('GetDomainStats')).bytes);
  const { success = true, message = '' } = stats.response ?? {};
  check(!success && message === 'empty DomainStats', `GetDomainStats without a domain answers: ${message}`);
  const guest = cmdV1.GuestInfoResponse.decode((await ask('GetGuestInfo')).bytes);
  check(guest.response?.success === true, 'GetGuestInfo without a domain fails');
}

/** What libvirt says comes in the form that handlers and users know. @source KubeVirt launcher.md 9.2 */
async function tellsLibvirtErrors(scene: LauncherScene, connection: GrpcConnection): Promise<void> {
  const [code, domain, message] = [38, 10, 'no room for a suspend'];
  scene.daemon.faults.add({ kind: 'error', code, domain, message }, { procedure: 'DOMAIN_SUSPEND' });
  const answer = await connection.call(
    `${CMD}PauseVirtualMachine`,
    encodeVmi(JSON.stringify(scene.vmi)),
    CALL_LIMIT_MS,
  );
  const words = `LibvirtError(Code=${code}, Domain=${domain}, Message='${message}')`;
  checkRefusal('PauseVirtualMachine', 'a failure of libvirt', answer, words);
}

/** What crashes a launcher written in Go, or is plain nonsense, gets an answer, and the VM runs on. */
export async function badRequests(scene: LauncherScene): Promise<CellResult> {
  await scene.startLauncher();
  const { authority, userAgent } = factsOf(scene.line).shared;
  const name = authority.value === 'localhost' ? 'localhost' : scene.cmdSocket;
  using connection = await dialGrpc(scene.cmdSocket, { authority: name, userAgent: userAgent.value });
  await answersWithoutDomain(scene, connection);
  const handler = await scene.startVm();
  await refusesBrokenVmis(connection);
  await survivesTraps(scene, connection);
  await tellsLibvirtErrors(scene, connection);
  const ping = await connection.call(`${CMD}Ping`, new Uint8Array(), CALL_LIMIT_MS);
  check(ping.code === OK, `Ping got code ${ping.code}: ${ping.details}`);
  await scene.must(handler, 'update');
  check(scene.starts === 1 && scene.isDomainActive, 'the VM did not survive');
  checkPeace(handler);
  return PASS;
}
