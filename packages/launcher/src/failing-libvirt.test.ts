import { CMD_RPC_NAMES } from '@virtwire/shared-proto';
import type { CmdRequestInit, CmdRpc } from '@virtwire/shared-proto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startLauncherOnFake } from './testing/launcher-on-fake.ts';
import type { LauncherOnFake } from './testing/launcher-on-fake.ts';

/** What is answered without a question to libvirt, or goes on in the background. */
const WITHOUT_LIBVIRT: ReadonlySet<CmdRpc> = new Set<CmdRpc>([
  ...(['Ping', 'GetGuestInfo', 'GetUsers', 'GetFilesystems', 'SignalTargetPodCleanup'] as const),
  ...(['HotplugHostDevices', 'VirtualMachineMemoryDump', 'CancelVirtualMachineMigration'] as const),
  ...(['MigrateVirtualMachine', 'FinalizeVirtualMachineMigration'] as const),
]);
/** Failures of these are gRPC errors, as handlers know them. */
const GRPC_ERRORS: ReadonlySet<CmdRpc> = new Set<CmdRpc>(['Exec', 'GuestPing']);

let launcher: LauncherOnFake;

beforeAll(async () => {
  launcher = await startLauncherOnFake(['--vm-stats-collector']);
  launcher.daemon.faults.add({ kind: 'error', code: 1, domain: 10, message: '' }, { times: Infinity });
});

afterAll(() => launcher[Symbol.asyncDispose]());

function requestOf(rpc: CmdRpc): CmdRequestInit<CmdRpc> {
  const { vmi } = launcher.request;
  const start = {
    cmd: 'Start',
    mode: 'Push',
    backupName: 'b',
    backupStartTime: '2026-01-01T00:00:00Z',
    targetPath: '/t',
  };
  const more: Partial<Record<CmdRpc, object>> = {
    BackupVirtualMachine: { options: Buffer.from(JSON.stringify(start)) },
    Exec: { domainName: 'ns1_vm1', Command: 'true', Args: [], timeoutSeconds: 1 },
    GetVMStats: { domainStats: {}, dirtyRate: {}, guestGetLoad: {} },
    GuestPing: { domainName: 'ns1_vm1', timeoutSeconds: 1 },
    InjectLaunchSecret: { options: Buffer.from('{"header":"h","secret":"s"}') },
  };
  return { vmi, ...more[rpc] };
}

test.each(CMD_RPC_NAMES.filter((rpc) => !WITHOUT_LIBVIRT.has(rpc)))(
  'FM-1.3 %s says why it failed, also where libvirt says nothing',
  async (rpc) => {
    const result = await launcher.client.call(rpc, requestOf(rpc), { timeoutMs: 20_000 });
    const { code, detail = '' } = result.ok ? {} : result.error;
    expect(code).toBe(GRPC_ERRORS.has(rpc) ? 'Rpc' : 'Failed');
    expect(detail).not.toBe('');
  },
);
