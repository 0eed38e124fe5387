import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { connectCmd, type NotifyServer, serveNotify, vmiRequest } from '@virtwire/shared-proto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { RELEASE_LINES, type ReleaseLine } from '../../release-line.ts';
import type { EmulatedLauncher, EmulatedLauncherOptions } from '../api.ts';
import { factsOf } from '../lines/lines.ts';
import { openReleaseSchema } from '../schema/release-schema.ts';
import { dialGrpc } from '../transport/grpc-client.ts';
import { startEmulatedLauncher } from './launcher.ts';

const IDENTITY = { namespace: 'default', name: 'vm1', uid: 'uid-1' };
const VMI = {
  metadata: { namespace: 'default', name: 'vm1', uid: 'uid-1' },
  spec: {
    domain: {
      cpu: { sockets: 1, cores: 1, threads: 1, maxSockets: 4 },
      memory: { guest: '256Mi' },
      devices: {
        disks: [{ name: 'root', disk: { bus: 'virtio' } }],
        interfaces: [{ name: 'default', masquerade: {} }],
      },
    },
    volumes: [{ name: 'root', emptyDisk: { capacity: '64Mi' } }],
    terminationGracePeriodSeconds: 20,
  },
  status: { phase: 'Scheduled' },
};

/** Sent with no more than a VMI, these end a Go launcher or the VM. */
const HARMFUL = ['Exec', 'SyncVirtualMachineMemory', 'FinalizeVirtualMachineMigration', 'DeleteVirtualMachine'];

let dir: string;
let stack: AsyncDisposableStack;
let received: { type: string; domain: string }[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'compat-'));
  stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  received = [];
});
afterEach(async () => stack.disposeAsync());

async function start(line: ReleaseLine, more: Partial<EmulatedLauncherOptions> = {}): Promise<EmulatedLauncher> {
  const sockets = { socketsDir: join(dir, 'sockets'), shareDir: join(dir, 'share') };
  return stack.use(await startEmulatedLauncher({ line, vmi: IDENTITY, ...sockets, ...more }));
}

async function serve(name = 'domain-notify-pipe.sock'): Promise<NotifyServer> {
  return stack.use(
    await serveNotify(join(dir, 'share', name), {
      handleDomainEvent: async ({ eventType, domainJSON }) => {
        received.push({ type: eventType, domain: Buffer.from(domainJSON).toString('utf8') });
      },
      handleK8sEvent: async () => undefined,
    }),
  );
}

describe.each(RELEASE_LINES)('a launcher of %s', (line) => {
  test('takes a VM from its first sync to its end', async () => {
    await serve();
    const launcher = await start(line);
    using client = await connectCmd(launcher.cmdSocket);
    await client.syncVirtualMachine(vmiRequest(JSON.stringify(VMI), {}));
    expect(launcher.state.domain).toEqual({ status: 'Running', reason: 'Unknown' });
    expect(launcher.state).toMatchObject({ disks: ['root'], interfaces: ['default'], vcpus: 1, memoryKiB: 262_144 });
    await client.shutdownVirtualMachine(vmiRequest(JSON.stringify(VMI), {}));
    await launcher.waitFor('the guest to be off', ({ state }) => state.domain?.status === 'Shutoff');
    await client.deleteVirtualMachine(vmiRequest(JSON.stringify(VMI), {}));
    await launcher.waitFor('its end', ({ state }) => state.process === 'stopped');
    expect(launcher.events.map(({ type, status }) => `${type} ${status}`)).toEqual([
      'ADDED Shutoff/Unknown',
      'MODIFIED Paused/StartingUp',
      'MODIFIED Running/Unknown',
      'MODIFIED Running/Unknown',
      'MODIFIED Running/Unknown',
      'MODIFIED ShuttingDown/Unknown',
      'MODIFIED Shutoff/Shutdown',
      'MODIFIED NoState/NonExistent',
    ]);
    expect(launcher.events.every(({ outcome }) => outcome === 'sent')).toBe(true);
    expect(received).toHaveLength(8);
  });

  test('serves exactly the RPCs of its release', async () => {
    const launcher = await start(line);
    using connection = await dialGrpc(launcher.cmdSocket, { authority: 'localhost', userAgent: 'test' });
    const newest = [...openReleaseSchema('v1.9.0').cmdRpcs.values()];
    const answered = await Promise.all(
      newest
        .filter(({ name }) => !HARMFUL.includes(name))
        .map(async (rpc): Promise<number> => {
          const request = rpc.encodeRequest({ vmi: { vmiJson: JSON.stringify(VMI) } });
          return (await connection.call(rpc.path, request, 5_000)).code === 12 ? 0 : 1;
        }),
    );
    const count = answered.reduce((sum, one) => sum + one, 0);
    expect(launcher.state.crashReason).toBeUndefined();
    const harmful = HARMFUL.length - (line === 'v0.59' || line === 'v1.0' ? 1 : 0);
    expect(count + harmful).toBe(factsOf(line).launcher.cmdRpcCount.value);
  });
});
