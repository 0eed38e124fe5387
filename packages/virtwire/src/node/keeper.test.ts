import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { nodeLayout } from '../state/layout.ts';
import { VmiFiles } from '../state/vmi-files.ts';
import { Keeper } from './keeper.ts';
import type { KeptNode } from './keeper.ts';

let dir = '';
let told: string[] = [];
let looks = 0;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-keeper-'));
  mkdirSync(join(dir, 'vms'));
  told = [];
  looks = 0;
});
afterEach(() => rmSync(dir, { recursive: true }));

function startKeeper(): Keeper {
  const layout = nodeLayout(join(dir, 'state'));
  const store = new VmiFiles(layout.vmisDir);
  const list = store.list.bind(store);
  store.list = () => {
    looks += 1;
    return list();
  };
  const node: KeptNode = { store, layout, admit: ({ vmi }) => store.create(vmi) };
  const keeper = new Keeper({
    node,
    manifestsDir: join(dir, 'vms'),
    settledFile: join(dir, 'state/settled.json'),
    now: Date.now,
    tell: (key, text) => told.push(`${key ?? ''} ${text.replaceAll(dir, 'DIR')}`),
  });
  keeper.start();
  return keeper;
}

function write(name: string, fields: object): void {
  const document = {
    ...{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name } },
    spec: { domain: { memory: { guest: '64Mi' }, devices: { disks: [{ name: 'root' }] } }, ...fields },
  };
  writeFileSync(join(dir, 'vms', `${name}.json`), JSON.stringify(document));
}

test('a disk file that is missing is told once, not every two seconds, and the VM starts when it is there', async () => {
  write('web', { volumes: [{ name: 'root', hostDisk: { path: join(dir, 'd/disk.img'), type: 'Disk' } }] });
  write('bad', { volumes: 5 });
  using _keeper = startKeeper();
  await vi.waitFor(() => expect(looks).toBeGreaterThanOrEqual(3), { timeout: 20_000 });
  expect(told.sort()).toEqual([
    ' DIR/vms/bad.json: spec.volumes: must be a list, not 5',
    ' DIR/vms/web.json: spec.volumes[0].hostDisk.path: no disk file DIR/d/disk.img',
  ]);
  mkdirSync(join(dir, 'd'));
  writeFileSync(join(dir, 'd/disk.img'), '');
  await vi.waitFor(() => expect(told).toContain('default/web starting: DIR/vms/web.json'), { timeout: 20_000 });
});

test('a field that KubeVirt does not have is told when its VM is started', async () => {
  write('web', { domian: {}, volumes: [{ name: 'root', emptyDisk: { capacity: '1Mi' } }] });
  using _keeper = startKeeper();
  await vi.waitFor(() => expect(told).toHaveLength(2), { timeout: 20_000 });
  expect(told).toEqual([
    'default/web starting: DIR/vms/web.json',
    ' DIR/vms/web.json: spec.domian: KubeVirt has no such field: it is ignored',
  ]);
});

test('a directory of manifests that is gone is told once', async () => {
  using _keeper = startKeeper();
  await vi.waitFor(() => expect(looks).toBe(1), { timeout: 20_000 });
  rmSync(join(dir, 'vms'), { recursive: true });
  await vi.waitFor(() => expect(told).toHaveLength(1), { timeout: 20_000 });
  mkdirSync(join(dir, 'vms'));
  await vi.waitFor(() => expect(looks).toBeGreaterThanOrEqual(2), { timeout: 20_000 });
  expect(told).toEqual([expect.stringContaining('cannot look at the manifests')]);
});
