/**
 * Traps of KubeVirt's launcher, by their number in its dossier: each is either avoided here, or kept because handlers
 * build on it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { connectCmd, unwrap } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import { emptyDomain, parseVmiJson } from '@virtwire/vm-model';
import type { DomainDisk } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { execInGuest } from './agent/exec.ts';
import { updateDevices } from './domain/update-devices.ts';
import { killByForce } from './monitor/kill-by-force.ts';
import { createNudge } from './monitor/nudge.ts';
import { monitorQemu } from './monitor/qemu-monitor.ts';
import { createFakeClock } from './testing/fake-clock.ts';
import { eventually, startLauncherOnFake } from './testing/launcher-on-fake.ts';
import type { LauncherOnFake } from './testing/launcher-on-fake.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });

async function startRunning(flags: readonly string[] = []): Promise<LauncherOnFake> {
  const launcher = await startLauncherOnFake(flags);
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  await eventually('Running', () => launcher.events.some(({ domain }) => domain.Status.Status === 'Running'));
  return launcher;
}

test('trap 1: a plugged disk keeps the case of its names and paths, and carries no record of the launcher', async () => {
  const attached: string[] = [];
  const { Spec } = emptyDomain();
  const disk: DomainDisk = {
    Type: 'file',
    Device: 'disk',
    Source: { File: '/Overlays/Data.qcow2', DataStore: { Type: 'file', Source: { File: '/hotplug/Data.img' } } },
    Target: { Device: 'sda', Bus: 'scsi' },
    Capacity: 1 << 20,
    FilesystemOverhead: '0',
  };
  const refuse = (): Promise<never> => Promise.reject(new Error('only a disk is plugged here'));
  await updateDevices(
    {
      libvirt: {
        attachDevice: (_domain, xml) => Promise.resolve(void attached.push(xml)),
        detachDevice: refuse,
        updateDevice: refuse,
        getBlockInfo: refuse,
        blockResize: refuse,
      },
      devices: {
        isReady: () => Promise.resolve(true),
        completeDisk: (given) => Promise.resolve(given),
        discardDisk: refuse,
        possibleSize: () => Promise.resolve(undefined),
        growth: refuse,
        completeInterfaces: refuse,
      },
      hotplugDir: '/hotplug/',
      sizes: new Map(),
    },
    {
      vmi: parseVmiJson('{"metadata":{"name":"vm","namespace":"ns1","uid":"u"},"spec":{"domain":{"devices":{}}}}'),
      domain: { name: 'ns1_vm', uuid: '', id: 1 },
      live: Spec,
      wanted: { ...Spec, Devices: { Disks: [disk] } },
      options: undefined,
      log,
    },
  );
  expect(attached.length).toBe(1);
  expect(attached[0]).toMatch(/<dataStore type="file">.*<source file="\/hotplug\/Data\.img">/);
  expect(attached[0]).toContain('file="/Overlays/Data.qcow2"');
  expect(attached[0]).not.toMatch(/overhead|capacity/i);
});

test('trap 2: the watch over QEMU looks once a second after the pod is told to end too', async () => {
  const clock = createFakeClock(0);
  const stopping = new AbortController();
  let looks = 0;
  const watching = monitorQemu(
    {
      clock,
      log,
      readPid: () => 1,
      readProcessState: () => (looks++ < 20 ? 'S (sleeping)' : undefined),
      onShutdownSignal: () => undefined,
      kill: () => Promise.resolve(),
      isExitingEarly: () => false,
      isDomainGone: () => false,
      onZombie: () => undefined,
      nudge: createNudge(clock),
    },
    { domainName: 'ns1_vm', startTimeoutMs: 0, gracePeriodSeconds: 60 },
    stopping.signal,
  );
  await clock.settle();
  stopping.abort();
  await clock.advance(10_000);
  // One at the start, one for the signal, and one for each second; the clock of one may fall into the other.
  expect(looks).toBeGreaterThanOrEqual(10);
  expect(looks).toBeLessThanOrEqual(13);
  await clock.until(watching);
});

test('trap 3: statistics are made on demand, also when the pod is told to end', async () => {
  await using launcher = await startRunning(['--grace-period-seconds', '60']);
  launcher.terminate();
  await eventually('the mark', () =>
    launcher.events.some(({ domain }) => domain.Spec.Metadata.KubeVirt.GracePeriod?.MarkedForGracefulShutdown === true),
  );
  expect(JSON.parse(unwrap(await launcher.client.getDomainStats()).domainStats)).toMatchObject({ Name: 'ns1_vm1' });
});

test('trap 4: a pause on the user’s wish stamps the end of a migration, which never was', async () => {
  await using launcher = await startRunning();
  unwrap(await launcher.client.pauseVirtualMachine(launcher.request));
  const stamped = await eventually('the stamp', () =>
    launcher.events.find(({ domain }) => domain.Spec.Metadata.KubeVirt.Migration?.EndTimestamp !== undefined),
  );
  expect(stamped.domain.Spec.Metadata.KubeVirt.Migration?.StartTimestamp).toBeUndefined();
});

test('trap 5: a pause on request outlives a restart of the libvirt daemon', async () => {
  await using launcher = await startRunning();
  const { client, daemon, request } = launcher;
  unwrap(await client.pauseVirtualMachine(request));
  await daemon.crash();
  await daemon.start();
  await eventually('the reconnect', () =>
    launcher.lines.some(({ msg }) => String(msg).startsWith('Libvirt reconnected, domain ns1_vm1')),
  );
  unwrap(await client.syncVirtualMachine(request));
  expect(daemon.callsOf('DOMAIN_RESUME').length).toBe(0);
  unwrap(await client.unpauseVirtualMachine(request));
  expect(daemon.callsOf('DOMAIN_RESUME').length).toBe(1);
});

test('trap 6: a VM that an I/O error paused is resumed by the next sync, each time', async () => {
  await using launcher = await startRunning();
  const { client, daemon, domainName, request } = launcher;
  for (const times of [1, 2]) {
    daemon.domain(domainName).ioError({ srcPath: '/disk.img', devAlias: 'ua-disk' });
    unwrap(await client.syncVirtualMachine(request));
    expect(daemon.callsOf('DOMAIN_RESUME').length).toBe(times);
  }
});

test('trap 7: arguments of a guest command are escaped, whatever they hold', async () => {
  const commands: string[] = [];
  const agentCommand = (_domain: unknown, command: string): Promise<string> => {
    commands.push(command);
    return Promise.resolve(commands.length === 1 ? '{"return":{"pid":7}}' : '{"return":{"exited":true,"exitcode":0}}');
  };
  const libvirt = { lookupDomainByName: () => Promise.resolve({ name: 'ns1_vm', uuid: '', id: 1 }), agentCommand };
  const args = ['-c', 'echo "a\\b"\n', '\u2028', '"], "path": "/bin/rm'];
  const clock = createFakeClock(0);
  await clock.until(execInGuest({ libvirt, clock }, 'ns1_vm', { path: 'sh', args, timeoutSeconds: 10 }));
  expect(JSON.parse(commands[0] ?? '')).toMatchObject({ arguments: { path: 'sh', arg: args } });
});

test('trap 8: a kill that fails is told each time that it is tried, and QEMU gets SIGTERM instead', async () => {
  const texts: string[] = [];
  const write = (line: string): void => void texts.push((JSON.parse(line) as { readonly msg: string }).msg);
  const signals: number[] = [];
  const deps = {
    clock: createFakeClock(0),
    log: createLogger('virt-launcher', { destination: { write } }),
    kill: () => Promise.reject(new Error('libvirt is gone')),
    terminate: (pid: number) => void signals.push(pid),
  };
  for (const pid of [undefined, 42]) await killByForce(deps, pid);
  expect(signals).toEqual([42]);
  const failure = 'Unable to stop qemu with libvirt';
  expect(texts).toEqual([failure, failure, 'Falling back to SIGTERM']);
});

test('trap 9: a kill asks libvirt for SIGTERM, never for SIGKILL', async () => {
  await using launcher = await startRunning();
  unwrap(await launcher.client.killVirtualMachine(launcher.request));
  expect(launcher.daemon.callsOf('DOMAIN_DESTROY_FLAGS').map(({ args }) => args)).toMatchObject([{ flags: 1 }]);
});

test('trap 10: the socket outlives the launcher, and nobody answers on it', async () => {
  await using launcher = await startLauncherOnFake(['--grace-period-seconds', '0']);
  launcher.terminate();
  await launcher.ended;
  const socket = join(launcher.root, 'share/sockets/launcher-sock');
  expect(existsSync(socket)).toBe(true);
  await expect(connectCmd(socket)).rejects.toMatchObject({ code: 'DialFailed' });
});

test('trap 11: a guest ping takes the time that libvirt gives the agent, whatever the request says', async () => {
  await using launcher = await startRunning();
  launcher.daemon.domain(launcher.domainName).connectAgent();
  const ping = (timeoutSeconds: number) => launcher.client.guestPing({ domainName: 'ns1_vm1', timeoutSeconds });
  for (const timeoutSeconds of [0, -1, 3_600]) expect((await ping(timeoutSeconds)).ok).toBe(true);
});

test('trap 12: what crashes a launcher written in Go gets an answer, and the launcher goes on', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, request } = launcher;
  const answers = [
    await client.syncVirtualMachineCPUs({}),
    await client.syncVirtualMachineMemory(request),
    await client.hotplugHostDevices({}),
    await client.exec({ domainName: 'ns1_vm1', Command: 'true', timeoutSeconds: 0 }),
    await client.exec({ domainName: 'ns1_vm1', Command: 'true', timeoutSeconds: -1 }),
  ];
  expect(answers.map(({ ok }) => ok)).toEqual(answers.map(() => false));
  // Without options there are no interfaces to refresh.
  expect((await client.finalizeVirtualMachineMigration({ vmi: request.vmi })).ok).toBe(true);
  expect((await client.ping()).ok).toBe(true);
});
