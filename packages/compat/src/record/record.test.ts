import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cmdV1, connectCmd, vmiRequest } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { createNodeDirs } from '../matrix/node-dirs.ts';
import { POD_UID, scheduledVmi, VM } from '../matrix/test-vmi.ts';
import { readRecordings } from '../replay/recordings.ts';
import { replay } from '../replay/replay.ts';
import { maskRequest, maskResponse } from './mask.ts';
import { startRecorder } from './record.ts';

test('what passes through a recorder arrives, is written in the format of captures, and replays', async () => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({ line: 'v1.3', vmi: VM, socketsDir, shareDir });
  const out = mkdtempSync(join(tmpdir(), 'virtwire-record-'));
  const listen = join(dirs.root, 'rec');
  {
    await using recorder = await startRecorder({ listen, to: launcher.cmdSocket, out, release: 'v1.3.1' });
    using client = await connectCmd(listen);
    const vmi = scheduledVmi((one) => {
      one.spec.volumes = [{ name: 'c', cloudInitNoCloud: { userData: '#cloud-config password: hunter2' } }];
    });
    expect((await client.syncVirtualMachine(vmiRequest(JSON.stringify(vmi)))).ok).toBe(true);
    expect((await client.getVMStats()).ok).toBe(false);
    expect(recorder.messages).toBe(3);
  }
  expect(readdirSync(out)).toEqual([
    '001-Info.json',
    '002-SyncVirtualMachine.json',
    '003-GetVMStats.json',
    'index.json',
  ]);
  const written = readFileSync(join(out, '002-SyncVirtualMachine.json'), 'utf8');
  const { request } = JSON.parse(written) as { request: { base64: string } };
  const seen = Buffer.from(request.base64, 'base64').toString('utf8');
  expect(seen).not.toContain('hunter2');
  expect(seen).toContain('"userData":"masked"');
  expect(request).toMatchObject({
    type: 'kubevirt.cmd.v1.VMIRequest',
    protobufJSON: { vmi: { vmiJson: '@embedded' } },
    embedded: { 'vmi.vmiJson': { metadata: { name: VM.name } } },
  });
  expect((await replay(readRecordings(out))).problems).toEqual([]);
  rmSync(out, { recursive: true });
});

test('arguments of commands in the guest are masked, and what cannot be decoded stays so', () => {
  const exec = cmdV1.ExecRequest.fromPartial({ domainName: 'a_b', Command: 'passwd', Args: ['root', 'geheim'] });
  const masked = cmdV1.ExecRequest.decode(
    maskRequest('/kubevirt.cmd.v1.Cmd/Exec', cmdV1.ExecRequest.encode(exec).finish()),
  );
  expect(masked).toMatchObject({ Command: 'passwd', Args: ['masked', 'masked'] });
  const unreadable = maskRequest('/kubevirt.cmd.v1.Cmd/Exec', Buffer.from('0aff', 'hex'));
  expect(() => cmdV1.ExecRequest.decode(unreadable)).toThrow();
});

test('what a command in the guest printed is masked', () => {
  const answer = cmdV1.ExecResponse.fromPartial({ response: { success: true }, exitCode: 3, stdOut: 'geheim' });
  const masked = maskResponse('/kubevirt.cmd.v1.Cmd/Exec', cmdV1.ExecResponse.encode(answer).finish());
  expect(cmdV1.ExecResponse.decode(masked)).toMatchObject({ exitCode: 3, stdOut: 'masked' });
});

test.each(['kubectl.kubernetes.io/last-applied-configuration', 'kubevirt.io/ignitiondata'])(
  'the secrets in annotation %s are masked, and 64-bit numbers beside them keep their digits',
  (annotation) => {
    const json = `{"metadata":{"annotations":{"${annotation}":"geheim"}},"size":9223372036854775807}`;
    const request = cmdV1.VMIRequest.encode(cmdV1.VMIRequest.fromPartial(vmiRequest(json))).finish();
    const masked = cmdV1.VMIRequest.decode(maskRequest('/kubevirt.cmd.v1.Cmd/PauseVirtualMachine', request));
    expect(Buffer.from(masked.vmi?.vmiJson ?? []).toString('utf8')).toBe(
      `{"metadata":{"annotations":{"${annotation}":"masked"}},"size":9223372036854775807}`,
    );
  },
);
