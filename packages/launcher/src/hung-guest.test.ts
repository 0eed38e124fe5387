import { unwrap } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { eventually, startLauncherOnFake } from './testing/launcher-on-fake.ts';

test('an agent that hangs does not keep a kill from libvirt, however many probes wait for it', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, domainName, request } = launcher;
  launcher.startQemu();
  unwrap(await client.syncVirtualMachine(request));
  daemon.faults.add({ kind: 'silent' }, { procedure: 'QEMU_DOMAIN_AGENT_COMMAND', times: Infinity });
  const probes = Array.from({ length: 12 }, () => client.guestPing({ domainName, timeoutSeconds: 1 }));
  await eventually('a ping', () => daemon.callsOf('QEMU_DOMAIN_AGENT_COMMAND').length > 0);
  unwrap(await client.killVirtualMachine(request));
  expect(daemon.callsOf('DOMAIN_DESTROY_FLAGS')).toHaveLength(1);
  expect(daemon.callsOf('QEMU_DOMAIN_AGENT_COMMAND')).toHaveLength(1);
  client.close();
  expect((await Promise.all(probes)).some(({ ok }) => ok)).toBe(false);
});

test('a QEMU that draws no picture does not keep a kill from libvirt, however many ask for one', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, request } = launcher;
  launcher.startQemu();
  unwrap(await client.syncVirtualMachine(request));
  daemon.faults.add({ kind: 'silent' }, { procedure: 'DOMAIN_SCREENSHOT', times: Infinity });
  const pictures = Array.from({ length: 12 }, () => client.getScreenshot(request));
  await eventually('a question', () => daemon.callsOf('DOMAIN_SCREENSHOT').length > 0);
  unwrap(await client.killVirtualMachine(request));
  expect(daemon.callsOf('DOMAIN_DESTROY_FLAGS')).toHaveLength(1);
  client.close();
  expect((await Promise.all(pictures)).some(({ ok }) => ok)).toBe(false);
});

test('a guest whose agent hangs is reset, however many commands wait for it', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, domainName, request } = launcher;
  launcher.startQemu();
  unwrap(await client.syncVirtualMachine(request));
  daemon.faults.add({ kind: 'silent' }, { procedure: 'QEMU_DOMAIN_AGENT_COMMAND', times: Infinity });
  const command = { domainName, Command: 'true', Args: [], timeoutSeconds: 1 };
  const commands = Array.from({ length: 12 }, () => client.exec(command));
  await eventually('a command', () => daemon.callsOf('QEMU_DOMAIN_AGENT_COMMAND').length > 0);
  unwrap(await client.resetVirtualMachine(request));
  expect(daemon.callsOf('DOMAIN_RESET')).toHaveLength(1);
  client.close();
  expect((await Promise.all(commands)).some(({ ok }) => ok)).toBe(false);
});
