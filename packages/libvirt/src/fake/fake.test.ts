import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect } from '../connection.ts';
import type { Connection } from '../connection.ts';
import type { Domain } from '../domain.ts';
import {
  DomainDeviceModifyFlags,
  DomainGuestInfoTypes,
  DomainJobType,
  DomainMigrateFlags,
  DomainState,
} from '../gen/constants.gen.ts';
import { typedParams } from '../typed-params.ts';
import { tinyDomainXml } from '../testing/domain-xml.ts';
import { AgentError, startFakeDaemon } from './index.ts';
import type { FakeDaemon, GuestBehaviour } from './index.ts';

let daemon: FakeDaemon;
let connection: Connection;
let log: string[];

beforeEach(async () => {
  daemon = await startFakeDaemon({ socketPath: null });
  connection = await connect({ openTransport: () => daemon.openTransport() });
  log = [];
  await connection.onDomainEvent('lifecycle', (event) =>
    log.push(`lifecycle ${String(event.event)}/${String(event.detail)}`),
  );
  await connection.onDomainEvent('agentLifecycle', (event) =>
    log.push(`agent ${String(event.state)}/${String(event.reason)}`),
  );
  await connection.onDomainEvent('jobCompleted', (event) => log.push(`job ${String(event.params.length > 0)}`));
});

afterEach(async () => {
  await connection.close();
  await daemon.close();
});

async function started(behaviour: GuestBehaviour = {}): Promise<Domain> {
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'g', hasAgentChannel: true }));
  daemon.domain('g').behaviour = behaviour;
  await domain.create();
  log.splice(0);
  return domain;
}

describe('a guest', () => {
  test('powers off when asked, with the events of a real one', async () => {
    const domain = await started({ hasAgent: true });
    await expect.poll(() => log.splice(0)).toEqual(['agent 1/2']);
    await domain.shutdown();
    await expect.poll(() => log).toEqual(['agent 2/2', 'lifecycle 6/1', 'lifecycle 5/0']);
    expect(await domain.getState()).toEqual({ state: DomainState.SHUTOFF, reason: 1 });
  });

  test('ignores ACPI when it is told to', async () => {
    const domain = await started({ onShutdown: 'ignore' });
    await domain.shutdown();
    await connection.getType();
    expect((await domain.getState()).state).toBe(DomainState.RUNNING);
    expect(log).toEqual([]);
  });

  test('reboots, panics, has I/O errors and dies at the pull of a lever', async () => {
    const domain = await started();
    const reboots: string[] = [];
    const reasons: string[] = [];
    await connection.onDomainEvent('reboot', (event) => reboots.push(event.domain.name));
    await connection.onDomainEvent('ioErrorReason', (event) => reasons.push(event.reason));
    daemon.domain('g').rebootFromGuest();
    daemon.domain('g').ioError({ srcPath: '/d', devAlias: 'virtio-disk0', reason: 'enospc' });
    expect(await domain.getState()).toEqual({ state: DomainState.PAUSED, reason: 5 });
    await domain.resume();
    daemon.domain('g').panic();
    expect((await domain.getState()).state).toBe(DomainState.CRASHED);
    daemon.domain('g').killQemu();
    expect((await domain.getState()).state).toBe(DomainState.SHUTOFF);
    expect([reboots, reasons]).toEqual([['g'], ['enospc']]);
    expect(log).toEqual(['lifecycle 3/2', 'lifecycle 4/0', 'lifecycle 8/0', 'lifecycle 5/5']);
  });

  test('keeps a device that it does not want to release', async () => {
    const domain = await started({ onDetach: 'keep' });
    const nic = "<interface type='ethernet'><mac address='52:54:00:00:00:01'/></interface>";
    await domain.attachDevice(nic, DomainDeviceModifyFlags.LIVE);
    await domain.detachDevice(nic, DomainDeviceModifyFlags.LIVE);
    expect(await domain.getXmlDesc()).toContain('52:54:00:00:00:01');
    daemon.domain('g').behaviour = {};
    await domain.detachDeviceAlias('net0', DomainDeviceModifyFlags.LIVE);
    expect(await domain.getXmlDesc()).not.toContain('52:54:00:00:00:01');
  });
});

describe('the agent', () => {
  const interfaces = [
    {
      name: 'eth0',
      'hardware-address': '02:00:00:00:00:01',
      'ip-addresses': [
        { 'ip-address': '10.0.2.2', 'ip-address-type': 'ipv4', prefix: 24 },
        { 'ip-address': 'fe80::1', 'ip-address-type': 'ipv6', prefix: 64 },
      ],
    },
  ];

  test('answers commands, and the calls that libvirt makes of them', async () => {
    const domain = await started({
      hasAgent: true,
      agent: {
        'guest-network-get-interfaces': () => interfaces,
        'guest-get-users': () => [{ user: 'root', 'login-time': 1.5 }],
      },
    });
    await expect.poll(() => log).toContain('agent 1/2');
    expect(await domain.agentCommand('{"execute":"guest-ping"}')).toBe('{"return":{}}');
    const info = await domain.getGuestInfo();
    expect(info.text('os.id')).toBe('debian');
    expect(info.number('if.0.addr.count')).toBe(2);
    expect(info.text('if.0.addr.1.addr')).toBe('fe80::1');
    expect(info.bigint('user.0.login-time')).toBe(1_500n);
    expect((await domain.getGuestInfo(DomainGuestInfoTypes.HOSTNAME)).toObject()).toEqual({ hostname: 'guest' });
    expect((await domain.interfaceAddresses(1))[0]?.addrs[0]).toEqual({ type: 0, addr: '10.0.2.2', prefix: 24 });
    expect(await domain.fsFreeze()).toBe(1);
    expect(await domain.fsThaw()).toBe(1);
    await domain.setUserPassword('root', 'secret');
  });

  test('answers with an error in the daemon’s words, and goes away', async () => {
    const refuse = (): never => {
      throw new AgentError('Guest agent command failed, error was: no such user');
    };
    const domain = await started({ hasAgent: true, agent: { 'guest-set-user-password': refuse } });
    await expect.poll(() => log).toContain('agent 1/2');
    await expect(domain.setUserPassword('x', 'y')).rejects.toMatchObject({
      code: 1,
      message:
        "internal error: unable to execute QEMU agent command 'guest-set-user-password': Guest agent command failed, error was: no such user",
    });
    daemon.domain('g').disconnectAgent();
    await expect(domain.agentCommand('{"execute":"guest-ping"}')).rejects.toMatchObject({ code: 86 });
  });
});

describe('jobs', () => {
  const flags = DomainMigrateFlags.LIVE | DomainMigrateFlags.PEER2PEER;

  test('a migration takes the guest away', async () => {
    const domain = await started();
    await domain.migrateToUri('qemu+unix:///system?socket=/run/x', typedParams({ bandwidth: 64n }), flags);
    expect((await domain.getState()).reason).toBe(4);
    expect(log).toEqual(['lifecycle 3/1', 'lifecycle 5/3', 'job true']);
    expect((await domain.getJobStats(1)).type).toBe(DomainJobType.COMPLETED);
    expect((await domain.getJobStats(1)).type).toBe(DomainJobType.NONE);
  });

  test('a guest arrives from elsewhere, running and kept', async () => {
    daemon.hypervisor.receive(tinyDomainXml({ name: 'guest-from-afar' }));
    const domain = await connection.lookupDomainByName('guest-from-afar');
    expect(await domain.getState()).toMatchObject({ state: DomainState.RUNNING });
    expect(daemon.domain('guest-from-afar').isPersistent).toBe(true);
    expect(log).toEqual(['lifecycle 2/1', 'lifecycle 4/1', 'lifecycle 0/0']);
    expect(() => daemon.hypervisor.receive(tinyDomainXml({ name: 'guest-from-afar' }))).toThrow(/already/);
  });

  test('a migration reports figures, and ends when it is aborted or fails', async () => {
    const domain = await started({ jobDurationMs: 'untilLever' });
    const aborted = domain.migrateToUri('qemu:///x', [], flags).catch((error: unknown) => error);
    await expect.poll(() => daemon.domain('g').job).toBeDefined();
    daemon.domain('g').job?.report({ data_remaining: 5n << 30n });
    expect((await domain.getJobStats()).params.bigint('data_remaining')).toBe(5n << 30n);
    await domain.abortJob();
    expect(await aborted).toMatchObject({
      code: 78,
      message: 'operation aborted: migration out job: canceled by client',
    });
    expect((await domain.getState()).state).toBe(DomainState.RUNNING);
    const failed = domain.migrateToUri('qemu:///x', [], flags).catch((error: unknown) => error);
    await expect.poll(() => daemon.domain('g').job).toBeDefined();
    daemon.domain('g').job?.fail('migration out job failed');
    expect(await failed).toMatchObject({ message: 'operation failed: migration out job failed' });
  });

  test('a backup makes its checkpoint and says when it is done', async () => {
    const domain = await started();
    await domain.backupBegin('<domainbackup/>', '<domaincheckpoint><name>c1</name></domaincheckpoint>');
    await expect.poll(() => log).toEqual(['job true']);
    expect((await domain.checkpointLookupByName('c1')).name).toBe('c1');
    expect(await domain.listAllCheckpoints()).toHaveLength(1);
    await domain.checkpointDelete({ name: 'c1', dom: domain.ref });
    await expect(domain.checkpointLookupByName('c1')).rejects.toMatchObject({ code: 103 });
  });
});

test('keeps its domains and their state through a crash', async () => {
  const domain = await started();
  await daemon.crash();
  await daemon.start();
  await expect.poll(() => connection.state).toBe('open');
  expect((await domain.getState()).state).toBe(DomainState.RUNNING);
});

test('says which call it does not know', async () => {
  await expect(connection.call('NODE_GET_SECURITY_MODEL')).rejects.toMatchObject({
    code: 3,
    message: 'this function is not supported by the connection driver: NODE_GET_SECURITY_MODEL',
  });
});

test('serves five hundred domains to a hundred clients', async () => {
  for (let i = 0; i < 500; i++) daemon.hypervisor.define(tinyDomainXml({ name: `d${String(i)}` })).start(false);
  const clients = await Promise.all(
    Array.from({ length: 100 }, () => connect({ openTransport: () => daemon.openTransport(), reconnect: false })),
  );
  const counts = await Promise.all(clients.map(async (client) => (await client.listAllDomains()).length));
  expect(new Set(counts)).toEqual(new Set([500]));
  await Promise.all(clients.map((client) => client.close()));
});
