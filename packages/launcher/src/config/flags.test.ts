import { expect, test } from 'vitest';
import { LauncherError } from '../errors.ts';
import { parseFlags, renderFlagHelp } from './flags.ts';

test('the defaults are those of the release', () => {
  expect(parseFlags([])).toMatchObject({
    qemuTimeoutMs: 180_000,
    kubevirtShareDir: '/var/run/kubevirt',
    gracePeriodSeconds: 30,
    diskMemoryLimitBytes: 2_097_152_000,
    agentUserIntervalMs: 10_000,
    hypervisor: 'kvm',
    verbosity: 2,
    runAsNonroot: false,
    unknown: [],
  });
});

test('takes the command line that a controller renders', () => {
  const line =
    '--qemu-timeout 255s --name testvmi --uid 1-2 --namespace default --kubevirt-share-dir /var/run/kubevirt ' +
    '--ephemeral-disk-dir /var/run/kubevirt-ephemeral-disks --container-disk-dir /var/run/kubevirt/container-disks ' +
    '--grace-period-seconds 45 --hook-sidecars 0 --ovmf-path /usr/share/OVMF --disk-memory-limit 2097152000 ' +
    '--hypervisor kvm --run-as-nonroot --allow-emulation -v=4';
  expect(parseFlags(line.split(' '))).toMatchObject({
    qemuTimeoutMs: 255_000,
    name: 'testvmi',
    uid: '1-2',
    gracePeriodSeconds: 45,
    ovmfPath: '/usr/share/OVMF',
    runAsNonroot: true,
    allowEmulation: true,
    verbosity: 4,
    unknown: [],
  });
});

test.each(['-v 5', '-v5', '-v=5', '--v 5', '--v=5'])('reads the verbosity of %s', (line) => {
  expect(parseFlags(line.split(' '))).toMatchObject({ verbosity: 5, unknown: [] });
});

test.each([
  ['3m0s', 180_000],
  ['1.5h', 5_400_000],
  ['250ms', 250],
  ['0', 0],
])('reads the duration %s', (text, ms) => {
  expect(parseFlags(['--qemu-timeout', text]).qemuTimeoutMs).toBe(ms);
});

test('a flag of another release is noted, not fatal', () => {
  const { unknown, name } = parseFlags(['--brand-new', '--name', 'vm', '--other=1']);
  expect(unknown).toEqual(['--brand-new', '--other=1']);
  expect(name).toBe('vm');
});

test.each([
  [['--qemu-timeout', 'soon'], 'invalid argument "soon" for "--qemu-timeout" flag'],
  [['--hook-sidecars', '-1'], 'invalid argument "-1" for "--hook-sidecars" flag'],
  [['--hook-sidecars', 'x'], 'invalid argument "x" for "--hook-sidecars" flag'],
  [['--allow-emulation=perhaps'], 'invalid argument "perhaps" for "--allow-emulation" flag'],
  [['--name'], 'flag needs an argument: --name'],
])('refuses %j', (argv, message) => {
  expect(() => parseFlags(argv)).toThrow(LauncherError);
  expect(() => parseFlags(argv)).toThrow(message);
});

test('help names every flag with its default', () => {
  expect(renderFlagHelp()).toContain('  --qemu-timeout <duration> (default 180s)\n');
  expect(renderFlagHelp()).toContain('  --run-as-nonroot (default false)\n');
});
