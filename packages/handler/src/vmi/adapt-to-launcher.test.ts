import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cmdV1, unwrap } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectLauncher } from '../launchers/launcher.ts';
import { openLauncherEras } from '../launchers/launcher-eras.ts';
import { startFakeLauncher } from '../testing/fake-launcher.ts';
import type { FakeAnswer, FakeLauncher } from '../testing/fake-launcher.ts';
import { sampleVmi } from '../testing/samples.ts';
import { recordedLog } from '../testing/silent-log.ts';
import { adaptToLauncher } from './adapt-to-launcher.ts';
import type { Pass } from './pass.ts';

const UNIMPLEMENTED = 12;
let root = '';
let fake: FakeLauncher;
beforeEach(async () => {
  root = mkdtempSync('/tmp/virtwire-adapt-');
  fake = await startFakeLauncher(join(root, 'sock'));
  mkdirSync(join(root, 'var/run/kubevirt/container-disks'), { recursive: true });
  writeFileSync(join(root, 'var/run/kubevirt/container-disks/disk_0.img'), 'raw');
});
afterEach(() => {
  fake.kill();
  rmSync(root, { recursive: true, force: true });
});

/** What a sync of a VMI would carry, with a launcher that answers the probe like this. */
async function adapted(probe: FakeAnswer, withContainerDisk = true) {
  fake.answer('GetDomainDirtyRateStats', probe);
  const eras = openLauncherEras(root, () => true, recordedLog());
  eras.begin('uid-1', fake.versions.join(''));
  using client = await connectLauncher(join(root, 'sock'), undefined, (rpc, result) =>
    eras.noteResult('uid-1', rpc, result),
  );
  unwrap(await client.ping());
  const vmi = sampleVmi('Scheduled', (one) => {
    one.spec.volumes = withContainerDisk ? [{ name: 'cd', containerDisk: { image: 'a' } }] : [];
  });
  const launchers = { eraOf: (uid: string) => eras.eraOf(uid) };
  const pass = { vmi } as Pass;
  const isolationOf = async () => ({ pid: 1, ppid: 0, rootPath: root });
  const options = await adaptToLauncher({ launchers }, pass, client, {}, isolationOf);
  return cmdV1.VirtualMachineOptions.fromPartial(options);
}
const asked = (): readonly (CmdRpc | 'Info')[] => fake.calls.map(({ rpc }) => rpc);

test('a launcher before v1.6 is told of its container disks', async () => {
  const options = await adapted({ code: UNIMPLEMENTED, codeMessage: 'unknown method' });
  expect(options.DisksInfo.get('cd')).toMatchObject({ format: 'raw' });
  expect(options.ExpandDisksEnabled).toBe(true);
});

test('a launcher that knows the dirty rate looks at its images itself', async () => {
  const options = await adapted({ success: false, message: 'failed to get domain dirty rate stats' });
  expect(options.DisksInfo.size).toBe(0);
  expect(options.ExpandDisksEnabled).toBe(true);
});

test('a VMI without container disks costs no question', async () => {
  const options = await adapted({}, false);
  expect(asked()).toEqual(['Info', 'Ping']);
  expect(options.clusterConfig?.ExpandDisksEnabled).toBe(true);
});
