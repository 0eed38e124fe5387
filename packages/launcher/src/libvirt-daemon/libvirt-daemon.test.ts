import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../config/clock.ts';
import { parseFlags } from '../config/flags.ts';
import { eventually } from '../testing/launcher-on-fake.ts';
import { renderDaemonConf, renderQemuConf, writeDaemonConfig } from './config.ts';
import { detectLibvirtDaemon } from './detect.ts';
import { decideLogFilters } from './log-filters.ts';
import { createLineSplitter, joinContinued, MAX_LINE_BYTES, parseLibvirtLine, renderForwarded } from './log-lines.ts';
import { createQemuLogForwarder } from './qemu-log.ts';
import { forwardFirmwareLog } from './seabios-log.ts';
import { superviseProgram } from './supervise.ts';

const input = {
  logFilters: undefined,
  hasVirtlogd: true,
  hasHugepages: false,
  debugVirtiofsd: false,
  sharedFilesystems: undefined,
};

describe('configuration', () => {
  test('KubeVirt settings where the image says nothing', () => {
    const text = renderQemuConf('', input);
    expect(text).toContain('stdio_handler = "logd"\n');
    expect(text).toContain('namespaces = [ ]\n');
    expect(text).not.toContain('hugetlbfs_mount');
  });

  test('what the image sets stays, and is not repeated', () => {
    const text = renderQemuConf('user = "qemu"\n# vnc_tls = 1\nstdio_handler = "file"', input);
    expect(text.match(/^user/gm)).toHaveLength(1);
    expect(text).toContain('stdio_handler = "file"\n');
    expect(text).toContain('vnc_tls = 0\n');
  });

  test('the pod adds huge pages, shared file systems and debugging', () => {
    const text = renderQemuConf('', {
      ...input,
      hasHugepages: true,
      debugVirtiofsd: true,
      sharedFilesystems: '/a = b:/c',
    });
    expect(text).toContain(
      'hugetlbfs_mount = "/dev/hugepages"\nvirtiofsd_debug = 1\nshared_filesystems = [ "/a = b", "/c" ]\n',
    );
  });

  test('the daemon logs to its standard error, with filters if there are any', () => {
    expect(renderDaemonConf('', input)).toContain('log_outputs = "1:stderr"\n');
    expect(renderDaemonConf('', { ...input, logFilters: '3:remote 1:*' })).toContain('log_filters = "3:remote 1:*"\n');
  });

  test.each([
    ['nothing asked for', { custom: '', verbosity: undefined, isDebug: false }, undefined],
    ['a filter of the VMI', { custom: '1:qemu', verbosity: '9', isDebug: true }, '1:qemu'],
    ['low verbosity', { custom: '', verbosity: '4', isDebug: false }, undefined],
    ['nonsense', { custom: '', verbosity: 'much', isDebug: false }, undefined],
  ])('filters for %s', (_title, given, filters) => {
    expect(decideLogFilters(given)).toBe(filters);
  });

  test.each([
    [5, 5],
    [6, 4],
    [7, 3],
    [8, 1],
  ])('verbosity %i silences less of libvirt with each step', (verbosity, groups) => {
    const text = decideLogFilters({ custom: '', verbosity: String(verbosity), isDebug: false }) ?? '';
    expect(text.endsWith(' 1:*')).toBe(true);
    const names = ['qemu.qemu_monitor_json', 'qemu.qemu_monitor ', 'util.threadjob', 'cpu.cpu', 'remote'];
    expect(names.filter((name) => `${text} `.includes(name)).length).toBe(groups);
    expect(decideLogFilters({ custom: '', verbosity: undefined, isDebug: true })).toBe(
      decideLogFilters({ custom: '', verbosity: '10', isDebug: false }),
    );
  });

  test('the files are written from those of the image; a setting file in the way is named', () => {
    const root = mkdtempSync(join(tmpdir(), 'virtwire-daemon-config-'));
    const dirs = ['--kubevirt-private-dir', `${root}/private`, '--libvirt-run-dir', `${root}/run`];
    const flags = parseFlags(['--run-as-nonroot', ...dirs, '--libvirt-etc-dir', `${root}/etc`]);
    const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
    mkdirSync(join(root, 'etc'));
    writeFileSync(join(root, 'etc/qemu.conf'), 'user = "qemu"\n');
    writeDaemonConfig(flags, input, log);
    expect(readFileSync(join(root, 'private/libvirt/qemu.conf'), 'utf8')).toMatch(/^user = "qemu"\nstdio_handler = /);
    expect(readFileSync(join(root, 'run/virtqemud.conf'), 'utf8')).toContain('log_outputs = "1:stderr"\n');
    expect(readFileSync(join(root, 'run/virtlogd.conf'), 'utf8')).toContain('log_outputs = "1:stderr"\n');
    rmSync(join(root, 'etc/qemu.conf'));
    mkdirSync(join(root, 'etc/qemu.conf'));
    expect(() => writeDaemonConfig(flags, input, log)).toThrow(`failed to write ${root}/private/libvirt/qemu.conf: `);
    rmSync(root, { recursive: true });
  });

  test('an image without a daemon is named', () => {
    expect(() => detectLibvirtDaemon(['/nowhere'])).toThrow('neither virtqemud nor libvirtd found in /nowhere');
  });
});

describe('forwarded log lines', () => {
  const now = '2026-01-01T00:00:00.000000Z';
  test.each([
    [
      '2026-11-29 21:18:08.370+0000: 10744: error : virGetUserEnt:585 : Failed to find user record',
      { level: 'error', msg: 'Failed to find user record', pos: 'virGetUserEnt:585', thread: '10744' },
    ],
    ['2026-11-29 21:18:08.370+0000: 7: debug : f:1 : a: b: c', { level: 'info', msg: 'a: b: c', pos: 'f:1' }],
    ['2026-11-29 21:18:08.370+0000: 7: info : hostname: vm', { level: 'info', msg: 'hostname: vm' }],
    ['something else', { level: 'info', msg: 'something else', timestamp: now }],
  ])('%s', (line, fields) => {
    expect(parseLibvirtLine(line, 2, now)).toMatchObject({ subcomponent: 'libvirt', ...fields });
  });

  test('noise of the agent shows at verbosity 4 only, as a warning', () => {
    const line = '2026-11-29 21:18:08.370+0000: 7: error : f:1 : internal error: unable to execute QEMU agent command';
    expect(parseLibvirtLine(line, 2, now)).toBeUndefined();
    expect(parseLibvirtLine(line, 4, now)).toMatchObject({ level: 'warning' });
    expect(parseLibvirtLine('  ', 4, now)).toBeUndefined();
  });

  test('keys are in the order of Go', () => {
    const line = renderForwarded({ level: 'info', msg: 'm', timestamp: now, thread: '1', subcomponent: 'libvirt' });
    expect(Object.keys(JSON.parse(line) as object)).toEqual([
      'component',
      'level',
      'msg',
      'subcomponent',
      'thread',
      'timestamp',
    ]);
  });

  test('lines come whole whatever the chunks; an endless one is cut', () => {
    const splitter = createLineSplitter();
    expect(splitter.push(Buffer.from('a\nb'))).toEqual(['a']);
    expect(splitter.push(Buffer.from('c\n'))).toEqual(['bc']);
    expect(splitter.push(Buffer.alloc(2 * MAX_LINE_BYTES + 10, 'x')).map(({ length }) => length)).toEqual([
      MAX_LINE_BYTES,
      MAX_LINE_BYTES,
    ]);
    expect(splitter.push(Buffer.from('y\n'))).toEqual(['xxxxxxxxxxy']);
    const [first, second] = [Buffer.from('é\n').subarray(0, 1), Buffer.from('é\n').subarray(1)];
    expect([...splitter.push(first), ...splitter.push(second)]).toEqual(['é']);
    expect([...splitter.push(Buffer.from('last \xff', 'latin1')), ...splitter.end()]).toEqual(['last \ufffd']);
    expect(joinContinued(['a \\', 'b \\', 'c', 'd'])).toEqual(['a \\b \\c', 'd']);
  });

  test('QEMU log: what is new, whole lines, each once', () => {
    const dir = mkdtempSync(join(tmpdir(), 'virtwire-qemu-log-'));
    const file = join(dir, 'vm.log');
    const lines: string[] = [];
    const forwarder = createQemuLogForwarder(file, (line) => lines.push((JSON.parse(line) as { msg: string }).msg));
    forwarder.forward();
    writeFileSync(file, 'starting up\nLC_ALL=C \\\n/usr/bin/qemu\nhal');
    forwarder.forward();
    appendFileSync(file, 'f\n');
    forwarder.forward();
    forwarder.forward();
    expect(lines).toEqual(['starting up', 'LC_ALL=C \\/usr/bin/qemu', 'half']);
    rmSync(dir, { recursive: true });
  });
});

test('the firmware logs into a pipe that is always read', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'virtwire-firmware-'));
  const pipe = join(dir, 'pipe');
  const lines: string[] = [];
  const read = await forwardFirmwareLog(pipe, (line) => lines.push((JSON.parse(line) as { msg: string }).msg));
  writeFileSync(pipe, 'SeaBIOS (version 1)\nBooting');
  writeFileSync(pipe, ' from disk\n');
  await eventually('both lines', () => lines.length === 2);
  expect(lines).toEqual(['[SeaBios]:SeaBIOS (version 1)', '[SeaBios]:Booting from disk']);
  expect(statSync(pipe).mode & 0o777).toBe(0o666);
  read[Symbol.dispose]();
  rmSync(dir, { recursive: true });
});

test('a program that ends is started again, and its last words are kept; a stop is final', async () => {
  const lines: string[] = [];
  const errors: string[] = [];
  const write = (line: string): void => void errors.push((JSON.parse(line) as { msg: string }).msg);
  const log = createLogger('virt-launcher', { destination: { write } });
  const program = {
    name: 'daemon',
    path: '/bin/sh',
    args: ['-c', 'echo up >&2; printf down >&2'],
    env: {},
    onLine: (line: string) => void lines.push(line),
  };
  const clock = { ...systemClock, sleep: () => systemClock.sleep(10) };
  const supervised = superviseProgram(program, clock, log);
  await eventually('three starts', () => supervised.starts >= 3);
  await supervised.stop();
  const { starts } = supervised;
  expect(errors).toContain('daemon exited, restarting');
  expect(lines.slice(0, 2)).toEqual(['up', 'down']);
  await systemClock.sleep(50);
  expect(supervised.starts).toBe(starts);
});
