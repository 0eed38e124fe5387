import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { unwrap } from '@virtwire/shared-proto';
import { beforeAll, describe, expect, test } from 'vitest';
import { createVmi, requestOf } from './support/guest.ts';
import { buildMonitor, REAL_LAUNCHER, startMonitorPod } from './support/monitor.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually } from './support/sandbox.ts';

const LIMIT = { timeout: 240_000 };
const UID = '7a1b2c3d-0000-4000-8000-00000000000c';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const PROXY = fileURLToPath(new URL('./support/istio-proxy.ts', import.meta.url));
/** A QEMU without a machine, in the background: nobody's child but process 1's. */
const QEMU = 'qemu-system-x86_64 -machine none -display none -daemonize';

const messages = (pod: LauncherPod): string[] => pod.logs.map(({ msg }) => String(msg));
const statusOf = (pid: number): string => readFileSync(`/proc/${String(pid)}/status`, 'utf8');
const fieldOf = (status: string, name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
const qemusOf = (pod: LauncherPod): number[] => [...pod.processStates().keys()].filter(isQemu);

function isQemu(pid: number): boolean {
  try {
    return readFileSync(`/proc/${String(pid)}/comm`, 'utf8').startsWith('qemu-system');
  } catch {
    return false;
  }
}

beforeAll(buildMonitor, 120_000);

describe.concurrent('the launcher that it starts', LIMIT, () => {
  test('has the same arguments and environment, and may bind low ports', async () => {
    await using pod = await startMonitorPod({
      launcher: 'echo "args: $*" >&2; echo "pod $POD_NAME" >&2; cat /proc/self/status >&2',
      flags: [...FLAGS, '--keep-after-failure', '--some-flag-of-later', '-v', '4'],
    });
    expect(await pod.exited).toBe(0);
    expect(pod.output()).toContain(`args: ${FLAGS.join(' ')} --some-flag-of-later -v 4\n`);
    expect(pod.output()).toContain('pod virt-launcher-test\n');
    expect(fieldOf(pod.output(), 'Uid').split('\t')[0]).toBe('107');
    expect(fieldOf(pod.output(), 'NoNewPrivs')).toBe('1');
    for (const set of ['CapAmb', 'CapEff', 'CapPrm', 'CapBnd']) {
      expect([set, fieldOf(pod.output(), set)]).toEqual([set, '0000000000000400']);
    }
  });

  test.each([
    ['its own end', 'exit 0', 0, undefined],
    ['a failure', 'exit 2', 2, 'dirty virt-launcher shutdown: exit-code 2'],
    ['a signal', 'kill -KILL $$', 255, 'dirty virt-launcher shutdown: exit-code -1'],
    ['no launcher at all', undefined, 1, 'failed to run virt-launcher'],
  ])('ends by %s, and its exit code is that of the pod', async (_title, launcher, code, message) => {
    await using pod = await startMonitorPod({ launcher });
    expect(await pod.exited).toBe(code);
    const dirty = pod.logs.filter(({ level }) => level === 'error').map(({ msg }) => msg);
    if (message === undefined) expect(dirty.filter((msg) => String(msg).startsWith('dirty'))).toEqual([]);
    else expect(dirty).toContain(message);
    expect(messages(pod).at(-1)).toBe('virt-launcher-monitor: Exiting...');
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGQUIT'] as const)('is told to end by %s', async (name) => {
    await using pod = await startMonitorPod({
      launcher: 'trap "echo asked to end >&2; exit 5" TERM; echo up >&2; while :; do sleep 0.1; done',
    });
    await eventually('the launcher', () => pod.output().includes('up\n'));
    process.kill(pod.initPid(), name);
    expect(await pod.exited).toBe(5);
    expect(pod.output()).toContain('asked to end\n');
    expect(messages(pod)).toContain('signalling virt-launcher to shut down');
  });
});

test('FM-9.1 process 1 collects all that ends in the pod, many deaths at once too', LIMIT, async () => {
  await using pod = await startMonitorPod({
    launcher:
      'i=0; while [ $i -lt 200 ]; do (sleep 1 & sleep 1 &) ; i=$((i+1)); done; echo up >&2; while :; do sleep 0.1; done',
    flags: ['-v', '4'],
  });
  await eventually('the orphans', () => pod.output().includes('up\n'));
  await eventually('all collected', () => messages(pod).filter((msg) => msg.startsWith('Reaped pid')).length >= 400);
  expect([...pod.processStates().values()].filter((state) => state === 'Z')).toEqual([]);
});

describe.concurrent('FM-9.3 a QEMU that is left when the launcher has crashed', LIMIT, () => {
  test('is asked to end, and the exit code stays that of the launcher', async () => {
    await using pod = await startMonitorPod({ launcher: `${QEMU}; exit 2` });
    await pod.waitForLog('Killing QEMU gracefully.');
    expect(await pod.exited).toBe(2);
    expect(messages(pod)).not.toContain('QEMU did not end within 10 s, killing it');
  });

  test('is killed after 10 s when it does not listen, and that is a failure', async () => {
    await using pod = await startMonitorPod({
      launcher: `${QEMU} -pidfile /run/kubevirt/qemu.pid; kill -STOP $(cat /run/kubevirt/qemu.pid); exit 0`,
      flags: ['--keep-after-failure'],
    });
    await pod.waitForLog('QEMU did not end within 10 s, killing it');
    await pod.waitForLog('keeping virt-launcher container alive since --keep-after-failure is set to true');
    await eventually('its end', () => qemusOf(pod).length === 0);
    expect(messages(pod)).toContain('monitoring virt-launcher failed');
  });

  test('is told from a process that only looks like one to the eye', async () => {
    await using pod = await startMonitorPod({
      launcher: 'exit 0',
      flags: ['--name', 'my-qemu-system-x86', '--namespace', 'qemu-kvm'],
    });
    expect(await pod.exited).toBe(0);
    expect(messages(pod)).not.toContain('Killing QEMU gracefully.');
  });
});

describe.concurrent('what it leaves behind', LIMIT, () => {
  test('log files are in its own log, line by line, whatever is in them', async () => {
    const logs = '/run/kubevirt-private/libvirt/qemu/log';
    await using pod = await startMonitorPod({
      launcher: [
        `mkdir -p ${logs}/directory`,
        String.raw`printf 'first "line"\n\nlast \377 é' > ${logs}/b.log`,
        `head -c 600000 /dev/zero | tr '\\0' x > ${logs}/a.log`,
        `mkfifo ${logs}/pipe; ln -s /etc/passwd ${logs}/link`,
        'echo passt says > /var/run/kubevirt/passt.log',
      ].join('\n'),
    });
    expect(await pod.exited).toBe(0);
    const told = messages(pod);
    const start = told.indexOf('dump log file: /var/run/kubevirt/passt.log');
    expect(told.slice(start, start + 9).map((msg) => (msg.startsWith('xx') ? msg.length : msg))).toEqual([
      'dump log file: /var/run/kubevirt/passt.log',
      'passt says',
      `dump log file: ${logs}/a.log`,
      512 * 1024,
      600_000 - 512 * 1024,
      `dump log file: ${logs}/b.log`,
      'first "line"',
      '',
      'last � é',
    ]);
    expect(pod.logs.find(({ msg }) => msg === 'passt says')).toMatchObject({
      component: 'virt-launcher-monitor',
      level: 'info',
      pos: expect.stringMatching(/^log_files\.c:\d+$/) as string,
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/) as string,
    });
    expect(pod.output()).not.toContain('root:x:0:0');
  });

  test('the sockets of the container disks are gone, other files are not', async () => {
    const files = 'disk_0.sock disk_1.sock disk_0.img sock';
    await using pod = await startMonitorPod({
      launcher: `cd /run/kubevirt; mkdir disks; cd disks; touch ${files}`,
      flags: ['--container-disk-dir', '/run/kubevirt/disks', '--keep-after-failure'],
    });
    expect(await pod.exited).toBe(0);
    expect(readdirSync(`${pod.shareDir}/disks`).sort()).toEqual(['disk_0.img', 'sock']);
  });

  test('after a failure the pod can be kept, and is still tidy', async () => {
    await using pod = await startMonitorPod({
      launcher: '(sleep 300 &) ; exit 2',
      flags: ['--keep-after-failure'],
    });
    await pod.waitForLog('keeping virt-launcher container alive since --keep-after-failure is set to true');
    const orphan = [...pod.processStates().keys()].find((pid) => pid !== pod.initPid()) ?? 0;
    process.kill(pod.initPid(), 'SIGTERM');
    process.kill(orphan, 'SIGKILL');
    await eventually('the orphan to be collected', () => !pod.processStates().has(orphan));
    expect(pod.processStates().size).toBe(1);
    expect(messages(pod)).not.toContain('virt-launcher-monitor: Exiting...');
  });
});

describe.concurrent('the Istio proxy of the pod', LIMIT, () => {
  const startProxy = (server: string, busy: number): string =>
    `${process.execPath} ${PROXY} ${server} ${String(busy)} & sleep 3; exit 0`;

  test('is ended, also when it is busy at first', async () => {
    await using pod = await startMonitorPod({ launcher: startProxy('envoy', 2) });
    expect(await pod.exited).toBe(0);
    expect(pod.output().match(/^proxy: .*$/gm)).toEqual([
      'proxy: GET /healthz/ready',
      'proxy: POST /quitquitquit busy',
      'proxy: POST /quitquitquit busy',
      'proxy: POST /quitquitquit agreed',
    ]);
  });

  test('is not looked for where there are no sidecars', async () => {
    await using pod = await startMonitorPod({
      launcher: startProxy('envoy', 0),
      env: ['VIRT_LAUNCHER_NO_SIDECARS='],
    });
    expect(await pod.exited).toBe(0);
    expect(pod.output()).not.toContain('proxy: GET');
  });

  test('is left alone when it is another server', async () => {
    await using pod = await startMonitorPod({ launcher: startProxy('nginx', 0) });
    expect(await pod.exited).toBe(0);
    expect(pod.output().match(/^proxy: .*$/gm)).toEqual(['proxy: GET /healthz/ready']);
  });
});

describe.concurrent('the verbosity', LIMIT, () => {
  test.each([
    ['4', true, 'No more processes to be reaped'],
    ['much', false, 'failed to set log verbosity. It should be an integer, got much instead.'],
  ])('is that of VIRT_LAUNCHER_LOG_VERBOSITY: %s', async (value, isVerbose, message) => {
    await using pod = await startMonitorPod({
      launcher: '(sleep 0.1 &) ; sleep 1 & sleep 0.3',
      env: [`VIRT_LAUNCHER_LOG_VERBOSITY=${value}`],
    });
    expect(await pod.exited).toBe(0);
    expect(messages(pod)).toContain(message);
    expect(messages(pod).some((msg) => msg.startsWith('Reaped pid'))).toBe(isVerbose);
  });

  test.each(['-v 4', '-v=4', '-v4', '--v=4'])('is that of the flag: %s', async (flags) => {
    await using pod = await startMonitorPod({
      launcher: '(sleep 0.1 &) ; sleep 1 & sleep 0.3',
      flags: flags.split(' '),
    });
    expect(await pod.exited).toBe(0);
    expect(messages(pod)).toContain('No more processes to be reaped');
  });
});

describe.each([
  ['uid 107', false],
  ['root', true],
])('the real launcher below it, as %s', LIMIT, (_title, asRoot) => {
  const mode = asRoot ? [] : ['--run-as-nonroot'];
  const start = (): Promise<LauncherPod> =>
    startMonitorPod({ launcher: REAL_LAUNCHER, asRoot, flags: [...FLAGS, ...mode, '--allow-emulation'] });

  test('is ready, has the capability for DHCP, and ends well before there is a VM', async () => {
    await using pod = await start();
    await pod.waitUntilReady();
    expect(fieldOf(statusOf(pod.launcherPid()), 'CapAmb')).toBe('0000000000000400');
    expect(fieldOf(statusOf(pod.daemonPid() ?? 0), 'CapAmb')).toBe('0000000000000400');
    process.kill(pod.initPid(), 'SIGTERM');
    expect(await pod.exited).toBe(0);
    await pod.waitForLog('Received signal SIGTERM');
  });

  test('FM-9.3 when it is killed, its VM ends with it and its exit code says so', async () => {
    await using pod = await start();
    await pod.ear.open();
    await pod.waitUntilReady();
    using client = await pod.connect();
    unwrap(await client.syncVirtualMachine(requestOf(createVmi({ name: 'vm1', uid: UID }))));
    await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
    process.kill(pod.launcherPid(), 'SIGKILL');
    await pod.waitForLog('Killing QEMU gracefully.');
    expect(await pod.exited).toBe(255);
    if (asRoot) return;
    const log = '/run/kubevirt-private/libvirt/qemu/log/default_vm1.log';
    await pod.waitForLog(`dump log file: ${log}`);
    expect(messages(pod).some((msg) => msg.includes('-name guest=default_vm1'))).toBe(true);
  });
});
