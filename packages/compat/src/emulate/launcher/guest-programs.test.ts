import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectCmd, vmiRequest } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { renderVmiJson } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { scheduledVmi, VM } from '../../matrix/test-vmi.ts';
import type { EmulatedLauncher } from '../api.ts';
import { startEmulatedLauncher } from './launcher.ts';

let directory = '';
let launcher: EmulatedLauncher;
let client: CmdClient;

async function start(collectsStats: boolean): Promise<void> {
  const [socketsDir, shareDir] = [join(directory, 's'), join(directory, 'k')];
  launcher = await startEmulatedLauncher({ line: 'v1.9', vmi: VM, socketsDir, shareDir, collectsStats });
  client = await connectCmd(launcher.cmdSocket);
  const synced = await client.syncVirtualMachine(vmiRequest(renderVmiJson(scheduledVmi())));
  expect(synced.ok).toBe(true);
  await launcher.waitFor('Running', ({ state }) => state.domain?.status === 'Running');
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'vc'));
});
afterEach(async () => {
  client.close();
  await launcher[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const run = (Command: string, Args: string[] = [], timeoutSeconds = 1) =>
  client.exec({ domainName: `${VM.namespace}_${VM.name}`, Command, Args, timeoutSeconds });

test('programs end with their exit code, are missing, or take too long, in the words of a launcher', async () => {
  await start(false);
  expect(await run('true')).toMatchObject({ ok: false, error: { grpcCode: 2 } });
  launcher.connectAgent();
  expect(await run('/bin/true')).toMatchObject({ ok: true, value: { exitCode: 0, stdOut: '' } });
  expect(await run('false')).toMatchObject({ ok: true, value: { exitCode: 1 } });
  expect(await run('echo', ['a', 'b'])).toMatchObject({ ok: true, value: { stdOut: 'a b\n' } });
  expect(await run('sleep', ['1'], 2)).toMatchObject({ ok: true });
  const late = await run('sleep', ['9']);
  expect(late.ok ? '' : late.error.detail).toMatch(
    /^Timed out waiting for guest pid \[\d+\] for command \[sleep\] to exit$/,
  );
  expect(await run('no-such-program')).toMatchObject({ ok: false, error: { grpcCode: 2 } });
});

test('statistics come item by item behind their gate, and one that fails makes the whole fail', async () => {
  await start(true);
  const without = await client.getVMStats({ domainStats: {}, guestGetLoad: {}, guestGetOsInfo: {} });
  expect(without).toMatchObject({ ok: false });
  expect(without.ok ? '' : without.error.detail).toMatch(
    /^agent data guest-get-load: .*; agent data guest-get-osinfo: /,
  );
  launcher.connectAgent();
  const answer = await client.getVMStats({ domainStats: {}, guestGetLoad: {} });
  if (!answer.ok) throw answer.error;
  expect(JSON.parse(answer.value.domainStats?.domainStats ?? '')).toMatchObject({ Name: 'ns1_vm1' });
  expect(answer.value.guestAgentVersion?.message).toBe('10.0.0');
  expect(JSON.parse(answer.value.guestGetLoad?.message ?? '')).toMatchObject({ return: { load1m: 0.5 } });
  expect(answer.value.dirtyRateStats).toBeUndefined();
  expect(answer.value.guestGetTime).toBeUndefined();
});

test('statistics are refused by a launcher without the flag', async () => {
  await start(false);
  const answer = await client.getVMStats({ domainStats: {} });
  expect(answer.ok ? '' : answer.error.detail).toBe('VMStatsCollector feature gate is not enabled');
});
