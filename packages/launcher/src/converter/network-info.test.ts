import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { readNetworkInfo } from './network-info.ts';

const INFO = '{"interfaces":[{"network":"n","deviceInfo":{"type":"pci","pci":{"pci-address":"0000:65:0a.3"}}}]}';

let root: string;
let path: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-podinfo-'));
  path = join(root, 'network-info');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test('networks with the PCI addresses that the file names', async () => {
  writeFileSync(path, INFO);
  expect(await readNetworkInfo(path)).toEqual([{ network: 'n', pciAddress: '0000:65:0a.3' }]);
});

test('a file that is filled late is waited for', async () => {
  writeFileSync(path, '');
  const reading = readNetworkInfo(path);
  writeFileSync(path, INFO);
  expect(await reading).toHaveLength(1);
});

test('a file that stays empty is an error, one that is not there is not', async () => {
  expect(await readNetworkInfo(path)).toEqual([]);
  writeFileSync(path, '');
  await expect(readNetworkInfo(path, 0)).rejects.toThrow(
    'failed to create SR-IOV hostdevices: failed to create PCI address pool with network status from file: ' +
      'context deadline exceeded: file is not populated with network-info',
  );
});

test('a file that is no JSON is an error', async () => {
  writeFileSync(path, 'x');
  await expect(readNetworkInfo(path)).rejects.toThrow(
    'failed to create PCI address pool with network status from file: ',
  );
});
