import { lstatSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const LIMIT = { timeout: 120_000 };
const UID = '7a1b2c3d-0000-4000-8000-000000000010';
const NAMES = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];

const messages = (pod: LauncherPod): string[] => pod.logs.map(({ msg }) => String(msg));

async function endOf(pod: LauncherPod): Promise<number | null> {
  process.kill(pod.launcherPid(), 'SIGTERM');
  return await pod.exited;
}

describe('the command line', LIMIT, () => {
  test('of a controller of another release is taken as far as it is known', async () => {
    await using pod = await startLauncherPod([...NAMES, '--brand-new', '--later=1']);
    await pod.waitUntilReady();
    expect(messages(pod)).toContain('Ignoring unknown flags: --brand-new --later=1');
    expect(await endOf(pod)).toBe(0);
  });

  test.each([
    [
      'a value that cannot be read',
      ['--qemu-timeout', 'soon'],
      'panic: invalid argument "soon" for "--qemu-timeout" flag',
    ],
    ['a flag without its value', ['--name'], 'panic: flag needs an argument: --name'],
    ['a crash that is asked for', [...NAMES, '--simulate-crash'], 'panic: Simulated virt-launcher crash'],
  ])('with %s ends the launcher with code 2 and the reason', async (_title, flags, message) => {
    await using pod = await startLauncherPod(flags);
    expect(await pod.exited).toBe(2);
    expect(pod.output()).toContain(`\n${message}`);
    expect(pod.logs.at(-1)).toMatchObject({ level: 'fatal', component: 'virt-launcher' });
  });

  test('the crash comes after the directories are made', async () => {
    await using pod = await startLauncherPod([...NAMES, '--simulate-crash']);
    expect(await pod.exited).toBe(2);
    const modeOf = (path: string): string => (statSync(join(pod.root, path)).mode & 0o777).toString(8);
    expect(modeOf(`kubevirt-private/${UID}`)).toBe('755');
    expect(modeOf('kubevirt-private/vm-disks')).toBe('750');
    expect(messages(pod)).not.toContain('Connected to libvirt daemon');
  });
});

describe('the environment', LIMIT, () => {
  test('decides what libvirt logs and knows of its files', async () => {
    const env = ['SHARED_FILESYSTEM_PATHS=/mnt/a:/mnt/b', 'VIRTIOFSD_DEBUG_LOGS=1', 'VIRT_LAUNCHER_LOG_VERBOSITY=6'];
    await using pod = await startLauncherPod(NAMES, { env });
    await pod.waitUntilReady();
    const qemuConf = readFileSync(join(pod.root, 'kubevirt-private/libvirt/qemu.conf'), 'utf8');
    expect(qemuConf).toContain('virtiofsd_debug = 1\n');
    expect(qemuConf).toContain('shared_filesystems = [ "/mnt/a", "/mnt/b" ]\n');
    const told = await pod.waitForLog(/^Enabling libvirt log filters: /);
    const filters = String(told['msg']).replace('Enabling libvirt log filters: ', '');
    expect(filters).toContain('3:qemu.qemu_monitor ');
    const daemonConf = readFileSync(join(pod.root, 'libvirt/virtqemud.conf'), 'utf8');
    expect(daemonConf).toContain(`log_filters = "${filters}"\n`);
    // libvirt's own lines of the lowest level come through, in KubeVirt's form.
    expect(await pod.waitForLog(/^(ENTRY|OBJECT_NEW|Registering|Initializing|Loading|load|conf)/)).toMatchObject({
      component: 'virt-launcher',
      subcomponent: 'libvirt',
      level: 'info',
    });
    expect(await endOf(pod)).toBe(0);
  });

  test('that says nothing leaves libvirt quiet', async () => {
    await using pod = await startLauncherPod(NAMES);
    await pod.waitUntilReady();
    expect(messages(pod).some((msg) => msg.startsWith('Enabling libvirt log filters'))).toBe(false);
    const qemuConf = readFileSync(join(pod.root, 'kubevirt-private/libvirt/qemu.conf'), 'utf8');
    expect(qemuConf).not.toMatch(/virtiofsd_debug|shared_filesystems/);
    // A domain that comes from a node where firmware logs brings the pipe's name along.
    const pipe = await eventually('the pipe of the firmware', () =>
      lstatSync(join(pod.root, 'kubevirt-private/QEMUSeaBiosDebugPipe'), { throwIfNoEntry: false }),
    );
    expect(pipe.isFIFO()).toBe(true);
    expect(await endOf(pod)).toBe(0);
  });

  test('with a verbosity that is no number is told of', async () => {
    await using pod = await startLauncherPod(NAMES, { env: ['VIRT_LAUNCHER_LOG_VERBOSITY=much'] });
    await pod.waitForLog('failed to set log verbosity. It should be an integer, got much instead.');
    await pod.waitUntilReady();
    expect(await endOf(pod)).toBe(0);
  });
});

test('only the first signal counts, whichever it is', LIMIT, async () => {
  await using pod = await startLauncherPod(NAMES);
  await pod.waitUntilReady();
  for (const name of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const) process.kill(pod.launcherPid(), name);
  expect(await pod.exited).toBe(0);
  expect(messages(pod).filter((msg) => msg.startsWith('Received signal '))).toHaveLength(1);
});

test('a signal that comes before the launcher is ready is obeyed', LIMIT, async () => {
  await using pod = await startLauncherPod(NAMES);
  await pod.waitForLog(/^Connecting to libvirt daemon/);
  process.kill(pod.launcherPid(), 'SIGTERM');
  expect(await pod.exited).toBe(0);
  expect(messages(pod).at(-1)).toBe('Exiting...');
});
