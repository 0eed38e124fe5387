import { join } from 'node:path';
import { serveCmd, serveNotify } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { createNodeDirs } from '../matrix/node-dirs.ts';
import { POD_UID, VM } from '../matrix/test-vmi.ts';
import { probeLauncher, probeNotifyServer } from './probe.ts';

test.each(['v1.0', 'v1.3', 'v1.6', 'v1.9'] as const)(
  'tells a launcher of %s by its RPCs, and it survives',
  async (line) => {
    using dirs = createNodeDirs();
    const { socketsDir, shareDir } = dirs.pod(POD_UID);
    await using launcher = await startEmulatedLauncher({ line, vmi: VM, socketsDir, shareDir });
    const { findings, lines } = await probeLauncher(launcher.cmdSocket, true);
    expect(findings.filter(({ verdict }) => verdict === 'deviates')).toEqual([]);
    expect(lines).toContain(line);
    expect(launcher.state.process).toBe('running');
  },
);

test('sends nothing but questions unless it is told to', async () => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({ line: 'v1.9', vmi: VM, socketsDir, shareDir });
  const { findings } = await probeLauncher(launcher.cmdSocket, false);
  expect(launcher.calls.every(({ rpc }) => /^(Info|Ping|Get\w+|NoSuchMethod)$/.test(rpc))).toBe(true);
  expect(findings.find(({ rpc }) => rpc === 'KillVirtualMachine')?.verdict).toBe('not asked');
});

test('notices a launcher that accepts what it must refuse', async () => {
  using dirs = createNodeDirs();
  const socket = join(dirs.root, 'c');
  const server = await serveCmd(socket, { getScreenshot: () => ({ response: { success: true } }) });
  const { findings } = await probeLauncher(socket, true);
  expect(findings.find(({ rpc }) => rpc === 'SyncVirtualMachine')?.verdict).toBe('missing');
  await server.stop(0);
});

test('plays a launcher towards a notify server', async () => {
  using dirs = createNodeDirs();
  const socket = join(dirs.root, 'n');
  const server = await serveNotify(socket, { handleDomainEvent: () => undefined, handleK8sEvent: () => undefined });
  const { findings } = await probeNotifyServer(socket, true);
  expect(findings.map(({ rpc, verdict }) => `${rpc} ${verdict}`)).toEqual([
    'Info supported',
    'HandleDomainEvent supported',
    'HandleK8sEvent deviates',
  ]);
  await server.stop(0);
});
