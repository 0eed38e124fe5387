import { cmdV1 } from '@virtwire/shared-proto';
import type { CellResult } from '../../cell.ts';
import { dialGrpc } from '../../emulate/transport/grpc-client.ts';
import type { GrpcConnection, RawAnswer } from '../../emulate/transport/grpc-client.ts';
import { factsOf } from '../../emulate/lines/lines.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { checkPeace } from './running.ts';

const CMD = '/kubevirt.cmd.v1.Cmd/';
const CALL_LIMIT_MS = 5_000;
const NO_VMI = 'No valid vmi object present in command server request';

const encodeVmi = (vmiJson: string): Uint8Array =>
  cmdV1.VMIRequest.encode(
    cmdV1.VMIRequest.fromPartial({ vmi: { vmiJson: Buffer.from(vmiJson) }, options: {} }),
  ).finish();

const VMI_REQUESTS = [
  ...(['SyncVirtualMachine', 'PauseVirtualMachine', 'UnpauseVirtualMachine', 'ShutdownVirtualMachine'] as const),
  ...(['KillVirtualMachine', 'DeleteVirtualMachine', 'SyncMigrationTarget', 'UnfreezeVirtualMachine'] as const),
  ...(['CancelVirtualMachineMigration', 'FinalizeVirtualMachineMigration', 'SoftRebootVirtualMachine'] as const),
];

function checkRefusal(rpc: string, what: string, { code, details, bytes }: RawAnswer): void {
  check(code === 0, `${rpc} with ${what} was answered with gRPC code ${code} (${details}), not with success=false`);
  const { success, message } = cmdV1.Response.decode(bytes);
  check(!success, `${rpc} with ${what} succeeded`);
  check(message === NO_VMI, `${rpc} with ${what} was refused with: ${message}`);
}

async function refusesBrokenVmis(connection: GrpcConnection): Promise<void> {
  const broken: readonly (readonly [string, Uint8Array])[] = [
    ['no message vmi', new Uint8Array()],
    ['an empty VMI', encodeVmi('')],
    ['half a VMI', encodeVmi('{"metadata":')],
  ];
  for (const rpc of VMI_REQUESTS) {
    for (const [what, bytes] of broken) checkRefusal(rpc, what, await connection.call(CMD + rpc, bytes, CALL_LIMIT_MS));
  }
}

async function survivesTraps(scene: LauncherScene, connection: GrpcConnection): Promise<void> {
  const vmi = encodeVmi(JSON.stringify(scene.vmi));
  const traps: readonly (readonly [string, Uint8Array])[] = [
    [
      'Exec',
      cmdV1.ExecRequest.encode(cmdV1.ExecRequest.fromPartial({ domainName: 'ns1_vm1', Command: 'ls' })).finish(),
    ],
    ['MigrateVirtualMachine', Buffer.concat([vmi.subarray(0, -2), Buffer.from('12046e756c6c', 'hex')])],
    ['SyncVirtualMachineMemory', vmi],
    ['FinalizeVirtualMachineMigration', vmi.subarray(0, -2)],
    ['BackupVirtualMachine', Buffer.concat([vmi.subarray(0, -2), Buffer.from('12046e756c6c', 'hex')])],
    ['GetVMStats', new Uint8Array()],
    ['SyncVirtualMachine', Buffer.from('0affffffff0f', 'hex')],
    ['NoSuchMethod', new Uint8Array()],
  ];
  for (const [rpc, bytes] of traps) {
    const answer = await connection.call(CMD + rpc, bytes, CALL_LIMIT_MS);
    scene.note(`${rpc}: code ${answer.code} ${answer.details}`);
    check(answer.code !== 4 && answer.code !== 14, `${rpc} broke the connection: ${answer.details}`);
    if (rpc === 'NoSuchMethod') check(answer.code === 12, `an unknown method got code ${answer.code}`);
  }
}

/** What crashes a launcher written in Go, or is plain nonsense, gets an answer, and the VM runs on. */
export async function badRequests(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  const { authority, userAgent } = factsOf(scene.line).shared;
  const name = authority.value === 'localhost' ? 'localhost' : scene.cmdSocket;
  using connection = await dialGrpc(scene.cmdSocket, { authority: name, userAgent: userAgent.value });
  await refusesBrokenVmis(connection);
  await survivesTraps(scene, connection);
  const ping = await connection.call(`${CMD}Ping`, new Uint8Array(), CALL_LIMIT_MS);
  check(ping.code === 0, `Ping got code ${ping.code}: ${ping.details}`);
  await scene.must(handler, 'update');
  check(scene.starts === 1 && scene.isDomainActive, 'the VM did not survive');
  checkPeace(handler);
  return PASS;
}
