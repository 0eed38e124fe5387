import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadManifest } from '../src/index.ts';
import { ensureGuest, GUEST, missingForVms, ROOT } from './support/machine.ts';
import { TestNode } from './support/test-node.ts';
import { untilAgent, untilVm } from './support/vm.ts';

const missing = missingForVms();

describe.skipIf(missing !== undefined)(`the example manifests${missing === undefined ? '' : `: ${missing}`}`, () => {
  let host: TestNode;

  beforeAll(async () => {
    ensureGuest();
    host = await TestNode.open();
  });
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
  });

  /** Starts an example, with its files in this test's own directory. */
  async function boot(name: string): Promise<string> {
    const { dir, layout } = host.scratch;
    const text = readFileSync(join(ROOT, 'examples', `${name}.yaml`), 'utf8')
      .replaceAll('../.cache/guest', GUEST)
      .replaceAll('/var/lib/virtwire-disks', join(dir, 'disks'));
    const file = join(dir, `${name}.yaml`);
    writeFileSync(file, text);
    await host.node.admit(loadManifest(file, layout), { keep: false });
    return `default/${name}`;
  }

  test('kernel-boot: two processors, empty disk, cloud-init, bridge', async () => {
    const key = await boot('kernel-boot');
    // The agent may answer before the guest has its lease, with a link-local address alone.
    const knowsGuest = ({ status }: Vmi): boolean => {
      const [first] = status?.interfaces ?? [];
      return first?.infoSource === 'domain, guest-agent' && first.ipAddress === host.sandbox(key).podIp;
    };
    const { status } = await untilVm(host.node, key, 'the network as the guest has it', knowsGuest, 150_000);
    expect(status?.currentCPUTopology?.cores).toBe(2);
    expect(status?.volumeStatus?.map(({ name, target }) => [name, target])).toEqual([
      ['scratch', 'vda'],
      ['seed', 'vdb'],
    ]);
    expect(status?.interfaces?.[0]).toMatchObject({ name: 'default', ipAddress: host.sandbox(key).podIp });
    await host.stop(key);
  });

  test('host-disk: the disk file is made, and stays', async () => {
    const key = await boot('host-disk');
    await untilAgent(host.node, key);
    await host.stop(key);
    expect(statSync(join(host.scratch.dir, 'disks', 'data.img'))).toMatchObject({ size: 64 << 20, uid: 107 });
  });
});
