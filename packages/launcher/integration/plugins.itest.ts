import { readFileSync } from 'node:fs';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { createVmi, requestOf } from './support/guest.ts';
import { packLauncher } from './support/packed-launcher.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000032';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const PATIENT = { timeoutMs: 120_000 };
const vmi = createVmi({ name: 'vm1', uid: UID });

const plugin = (name: string, expression: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { domainHooks: [{ cel: { expression } }], ...spec },
});

function syncWith(client: CmdClient, ...plugins: readonly object[]): ReturnType<CmdClient['syncVirtualMachine']> {
  const pluginsJson = Buffer.from(JSON.stringify(plugins));
  return client.syncVirtualMachine({ ...requestOf(vmi), options: { pluginsJson } }, PATIENT);
}

test('QEMU runs what the expressions of plugins made of the domain', { timeout: 240_000 }, async () => {
  using launcher = packLauncher();
  await using pod = await startLauncherPod(FLAGS, launcher);
  await pod.ear.open();
  await pod.waitUntilReady();
  using client = await pod.connect();
  const word = 'DomainQEMUCommandlineArg{Value: "name=opt/plugin,string=" + vmi.Name}';
  const dear = `["ab"]${'.map(x, x + x)'.repeat(60)}.size() > 0 ? Domain{Title: "dear"} : Domain{}`;
  const started = await syncWith(
    client,
    plugin('b-more', 'Domain{Devices: DomainDeviceList{Sounds: [DomainSound{Model: "ich9"}]}}', {
      condition: 'domainSpec.Title == "first"',
    }),
    plugin(
      'a-first',
      'Domain{Title: "first", Devices: DomainDeviceList{Watchdogs: [DomainWatchdog{Model: "ib700"}]}}',
      {
        condition: 'vmi.Namespace == "default" && !has(domainSpec.Devices.Watchdogs)',
      },
    ),
    plugin(
      'c-args',
      `Domain{QEMUCommandline: DomainQEMUCommandline{Args: [DomainQEMUCommandlineArg{Value: "-fw_cfg"}, ${word}]}}`,
    ),
    plugin('d-dear', dear, { failureStrategy: 'Ignore' }),
    plugin('e-other', 'Domain{Title: "other"}', { condition: "vmi.status.phase == 'Running'" }),
  );
  unwrap(started);
  const pid = await eventually('QEMU', () => pod.qemuPid());
  const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  expect(args.filter((arg) => /"(?:ib700|ich9-intel-hda)"/.test(arg))).toHaveLength(2);
  expect(args[args.indexOf('-fw_cfg') + 1]).toBe('name=opt/plugin,string=vm1');
  const { domain } = unwrap(await client.getDomain(undefined, PATIENT));
  const kept = { Metadata: { KubeVirt: { UID } } };
  const changed = { Devices: { Watchdogs: [{ Model: 'ib700' }], SoundCards: [{ Model: 'ich9' }] } };
  expect(JSON.parse(domain)).toMatchObject({ Spec: { ...kept, ...changed } });
  const said = pod.logs.map(({ msg }) => String(msg));
  expect(said).toContain('Evaluating domain hooks from plugins: [a-first, b-more, c-args, d-dear, e-other]');
  expect(said).toContain('Skipping plugin e-other: condition not met');
  const reason = 'evaluating expression: operation cancelled: actual cost limit exceeded';
  expect(said).toContain(`Plugin d-dear hook 0 failed (ignored): ${reason}`);
  unwrap(await client.killVirtualMachine(requestOf(vmi), PATIENT));
});

test(
  'an expression that is wrong fails the start with its place, until it is right',
  { timeout: 240_000 },
  async () => {
    await using pod = await startLauncherPod(FLAGS);
    await pod.ear.open();
    await pod.waitUntilReady();
    using client = await pod.connect();
    const wrong = await syncWith(client, plugin('a', 'Domain{CPU: DomainCPU{Mod: "x"}}'));
    expect(wrong).toMatchObject({ ok: false });
    const mark = '\n | Domain{CPU: DomainCPU{Mod: "x"}}\n | .........................^';
    const place = "compiling expression: ERROR: <input>:1:26: undefined field 'Mod'";
    if (!wrong.ok) expect(wrong.error.detail).toContain(`plugin a hook 0 failed: ${place}${mark}`);
    // Libvirt, too, has a say in what a plugin makes.
    const refused = await syncWith(client, plugin('a', 'Domain{OnCrash: "explode"}'));
    if (!refused.ok) expect(refused.error.detail).toMatch(/explode/);
    expect(refused.ok).toBe(false);
    unwrap(await syncWith(client, plugin('a', 'Domain{OnCrash: "restart"}')));
    expect(await eventually('QEMU', () => pod.qemuPid())).toBeGreaterThan(0);
    unwrap(await client.killVirtualMachine(requestOf(vmi), PATIENT));
  },
);
