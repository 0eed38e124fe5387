import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CMD_RPC_NAMES } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';
import { describe, expect, test } from 'vitest';

const DIR = join(import.meta.dirname, '../../integration');

/** For each RPC the integration test that calls it on real libvirt and QEMU, and looks at what came of it. */
const TESTS: Readonly<Record<CmdRpc, readonly [file: string, title: string]>> = {
  SyncVirtualMachine: ['lifecycle', 'defines and starts the domain, and tells the handler in order'],
  PauseVirtualMachine: ['lifecycle', 'pauses and goes on; a sync does not end a pause that was asked for'],
  UnpauseVirtualMachine: ['lifecycle', 'pauses and goes on; a sync does not end a pause that was asked for'],
  FreezeVirtualMachine: ['guest-operations', 'file systems are frozen, as the agent says, and thawed'],
  UnfreezeVirtualMachine: ['guest-operations', 'file systems are frozen, as the agent says, and thawed'],
  ResetVirtualMachine: ['guest-operations', 'the guest boots again after a reset'],
  SoftRebootVirtualMachine: ['live-devices', 'the guest reboots on the request to %s'],
  ShutdownVirtualMachine: ['guest', 'powers off when it is asked to, and the launcher ends when the domain is deleted'],
  KillVirtualMachine: [
    'lifecycle',
    'a shutdown that the guest ignores stamps the time once; kill ends it, delete ends the launcher',
  ],
  DeleteVirtualMachine: [
    'lifecycle',
    'a shutdown that the guest ignores stamps the time once; kill ends it, delete ends the launcher',
  ],
  MigrateVirtualMachine: [
    'migration',
    'FM-9.7 a guest goes on with its memory and the right time, and both launchers tell of the end',
  ],
  SyncMigrationTarget: [
    'migration',
    'FM-9.7 a guest goes on with its memory and the right time, and both launchers tell of the end',
  ],
  CancelVirtualMachineMigration: [
    'migration',
    'FM-8.1 FM-8.9 FM-8.10 asked for twice it runs once; meanwhile all answers come; cancelled, the guest stays',
  ],
  SignalTargetPodCleanup: ['faults', 'FM-8.3 SignalTargetPodCleanup ends a waiting launcher with a code other than 0'],
  FinalizeVirtualMachineMigration: [
    'migration',
    'FM-9.7 a guest goes on with its memory and the right time, and both launchers tell of the end',
  ],
  HotplugHostDevices: ['lifecycle', 'a round without host devices to plug in changes nothing'],
  GetDomain: ['lifecycle', 'describes the running domain'],
  GetDomainStats: ['lifecycle', 'describes the running domain'],
  GetGuestInfo: ['guest', 'answers what the agent said'],
  GetUsers: ['guest-operations', 'users who are logged in, and mounted file systems'],
  GetFilesystems: ['guest-operations', 'users who are logged in, and mounted file systems'],
  Ping: ['lifecycle', 'is ready under the name that handlers look for, and says so'],
  Exec: ['guest-operations', 'a command runs in the guest: output, exit code, arguments with quotes'],
  GuestPing: ['guest', 'answers a ping; while it is paused the probe is excused'],
  VirtualMachineMemoryDump: ['guest-operations', 'the memory is dumped to a file that is a core, and older dumps go'],
  GetQemuVersion: ['lifecycle', 'answers every question before there is a domain'],
  SyncVirtualMachineCPUs: ['live-update', 'the guest gets CPUs'],
  SyncVirtualMachineMemory: ['live-update', 'the guest gets memory and gives it back'],
  GetSEVInfo: ['guest-operations', 'without SEV the answers say so'],
  GetLaunchMeasurement: ['guest-operations', 'without SEV the answers say so'],
  InjectLaunchSecret: ['guest-operations', 'without SEV the answers say so'],
  GetDomainDirtyRateStats: ['guest-operations', 'the dirty rate is measured, also within all statistics'],
  GetScreenshot: ['guest-operations', 'a screenshot is a picture'],
  BackupVirtualMachine: ['backup', 'a full backup restores to equal bytes, and the guest stood still when it began'],
  RedefineCheckpoint: [
    'backup',
    'a checkpoint is defined again after the VM was started anew, and the next backup goes on from it; a backup ends with its VM',
  ],
  GetVMStats: ['guest-operations', 'the dirty rate is measured, also within all statistics'],
};

/** What a test file takes from `support`. */
function helpersOf(text: string): string {
  const files = [...text.matchAll(/from '\.\/(support\/[\w-]+\.ts)'/g)].map(([, file]) => file ?? '');
  return files.map((file) => readFileSync(join(DIR, file), 'utf8')).join('\n');
}

/** The test of a title, and the code outside of tests that it can call. */
function testOf(file: string, title: string): { readonly body: string; readonly reachable: string } {
  const text = readFileSync(join(DIR, `${file}.itest.ts`), 'utf8');
  const [outside = '', ...tests] = text.split(/^ {0,2}test\b/m);
  const body = tests.find((one) => one.includes(`'${title}'`)) ?? '';
  return { body, reachable: `${outside}\n${helpersOf(text)}\n${body}` };
}

describe('every RPC has an integration test that calls it', () => {
  test.each(CMD_RPC_NAMES.map((rpc) => [rpc, ...TESTS[rpc]] as const))('%s: %s.itest.ts, %s', (rpc, file, title) => {
    const { body, reachable } = testOf(file, title);
    expect(body).toContain('expect');
    expect(reachable).toContain(`.${rpc.charAt(0).toLowerCase()}${rpc.slice(1)}(`);
  });
});
