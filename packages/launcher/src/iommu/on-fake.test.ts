import * as fs from 'node:fs';
import * as net from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { copyDescriptors } from '@virtwire/host';
import { unwrap } from '@virtwire/shared-proto';
import { describe, expect, test } from 'vitest';
import { startLauncherOnFake } from '../testing/launcher-on-fake.ts';
import type { LauncherOnFake } from '../testing/launcher-on-fake.ts';

const never = new AbortController().signal;

interface Offering extends AsyncDisposable {
  readonly launcher: LauncherOnFake;
  /** How often this process, launcher and plugin, has open what stands for `/dev/iommu`. */
  opened(): number;
}

/** A launcher in whose pod the node's device plugin offers a descriptor, once. */
async function startWithDevice(): Promise<Offering> {
  const launcher = await startLauncherOnFake();
  launcher.startQemu();
  const device = fs.realpathSync(launcher.root) + '/iommu';
  fs.writeFileSync(device, '');
  const plugin = net.createServer((peer) => {
    const fd = fs.openSync(device, 'r');
    const copies = copyDescriptors([fd]);
    fs.closeSync(fd);
    void copies.send(peer, never).finally(() => copies[Symbol.dispose]());
    peer.once('data', () => peer.end());
    plugin.close();
  });
  plugin.listen(join(launcher.root, 'share/iommufd.sock'));
  await once(plugin, 'listening');
  return {
    launcher,
    opened: () =>
      fs.readdirSync('/proc/self/fd').filter((fd) => {
        try {
          return fs.readlinkSync(`/proc/self/fd/${fd}`) === device;
        } catch {
          return false;
        }
      }).length,
    async [Symbol.asyncDispose]() {
      plugin.close();
      await launcher[Symbol.asyncDispose]();
    },
  };
}

const callsSince = ({ daemon }: LauncherOnFake, index: number): readonly string[] =>
  daemon.calls.slice(index).map(({ procedure }) => procedure);

describe('a pod with a descriptor for IOMMUFD', () => {
  test('has it in its domain, and gives it to libvirt before the start', async () => {
    await using offering = await startWithDevice();
    const { client, daemon, request, domainName } = offering.launcher;
    const before = daemon.calls.length;
    unwrap(await client.syncVirtualMachine(request));
    const domain = daemon.domain(domainName);
    expect(domain.describe(true)).toContain("<iommufd enabled='yes' fdgroup='iommu'/>");
    expect([...domain.descriptorGroups]).toEqual([['iommu', 1]]);
    expect(daemon.callsOf('DOMAIN_FD_ASSOCIATE')).toMatchObject([{ args: { name: 'iommu', flags: 0 } }]);
    const calls = callsSince(offering.launcher, before);
    expect(calls.indexOf('DOMAIN_FD_ASSOCIATE')).toBeGreaterThan(calls.lastIndexOf('DOMAIN_DEFINE_XML_FLAGS'));
    expect(calls.indexOf('DOMAIN_FD_ASSOCIATE')).toBeLessThan(calls.indexOf('DOMAIN_CREATE_WITH_FLAGS'));
    expect(offering.opened()).toBe(1);
  });

  test('gives it to libvirt anew for each start, and leaves none open', async () => {
    await using offering = await startWithDevice();
    const { client, daemon, request } = offering.launcher;
    const refusal = { kind: 'error', code: 1, message: 'internal error: no' } as const;
    daemon.faults.add(refusal, { procedure: 'DOMAIN_CREATE_WITH_FLAGS', times: 3 });
    for (let i = 0; i < 3; i++) expect((await client.syncVirtualMachine(request)).ok).toBe(false);
    unwrap(await client.syncVirtualMachine(request));
    expect(daemon.callsOf('DOMAIN_FD_ASSOCIATE')).toHaveLength(4);
    expect(offering.opened()).toBe(1);
    unwrap(await client.syncVirtualMachine(request));
    expect(daemon.callsOf('DOMAIN_FD_ASSOCIATE')).toHaveLength(4);
  });

  test('does not start when libvirt refuses it, and says so', async () => {
    await using offering = await startWithDevice();
    const { client, daemon, request } = offering.launcher;
    const refusal = { kind: 'error', code: 3, message: 'this function is not supported', domain: 10 } as const;
    daemon.faults.add(refusal, { procedure: 'DOMAIN_FD_ASSOCIATE' });
    const refused = await client.syncVirtualMachine(request);
    expect(refused.ok ? '' : refused.error.message).toContain(
      "failed to associate IOMMUFD FD with domain: virError(Code=3, Domain=10, Message='this function is not supported')",
    );
    expect(daemon.callsOf('DOMAIN_CREATE_WITH_FLAGS')).toEqual([]);
    unwrap(await client.syncVirtualMachine(request));
  });

  test('lets Grace IO virtualisation go on to what else it needs', async () => {
    await using offering = await startWithDevice();
    const { client, request } = offering.launcher;
    const options = {
      GraceHostDeviceAliases: ['gpu-a'],
      clusterConfig: { PCINUMAAwareTopologyEnabled: true, GraceIOVirtualizationEnabled: true },
    };
    const refused = await client.syncVirtualMachine({ ...request, options });
    expect(refused.ok ? '' : refused.error.message).toMatch(/GraceIOVirtualization requires dedicated CPU placement"$/);
  });

  test('closes it when the launcher ends', async () => {
    await using offering = await startWithDevice();
    const { launcher } = offering;
    unwrap(await launcher.client.syncVirtualMachine(launcher.request));
    launcher.daemon.domain(launcher.domainName).powerOffFromGuest();
    await launcher[Symbol.asyncDispose]();
    await expect.poll(() => offering.opened()).toBe(0);
  });
});

test('a pod without one starts its VM without, and refuses Grace IO virtualisation for the want of it', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, request, domainName } = launcher;
  launcher.startQemu();
  const options = {
    GraceHostDeviceAliases: ['gpu-a'],
    clusterConfig: { PCINUMAAwareTopologyEnabled: true, GraceIOVirtualizationEnabled: true },
  };
  const refused = await client.syncVirtualMachine({ ...request, options });
  expect(refused.ok ? '' : refused.error.message).toMatch(/requires an IOMMUFD file descriptor in virt-launcher"$/);
  unwrap(await client.syncVirtualMachine(request));
  expect(daemon.domain(domainName).describe(true)).not.toContain('iommufd');
  expect(daemon.callsOf('DOMAIN_FD_ASSOCIATE')).toEqual([]);
});
