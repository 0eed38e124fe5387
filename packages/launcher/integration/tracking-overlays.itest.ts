import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createTrackingOverlay } from '../src/disks/storage-daemon.ts';

const TOOLS = ['/usr/bin/qemu-img', '/usr/bin/qemu-io', '/usr/bin/qemu-storage-daemon'];
const obstacle = TOOLS.filter((tool) => !existsSync(tool)).join(', ');
const BYTES = 1024 * 1024;

interface QemuInfo {
  readonly format: string;
  readonly 'virtual-size': number;
  readonly 'format-specific': { readonly data: { readonly 'data-file': string; readonly 'data-file-raw': boolean } };
}

describe.skipIf(obstacle !== '')(
  `overlays by a real storage daemon ${obstacle === '' ? '' : `(missing: ${obstacle})`}`,
  () => {
    let root: string;
    let overlay: string;

    beforeEach(() => {
      root = mkdtempSync(join(tmpdir(), 'virtwire-tracking-'));
      overlay = join(root, 'overlay.qcow2');
      writeFileSync(overlay, '');
    });
    afterEach(() => rmSync(root, { recursive: true, force: true }));

    test.each(['disk.img', 'a,b=c.img'])(
      'the data of %s stays where it is, and is read through the overlay',
      async (name) => {
        const image = join(root, name);
        writeFileSync(image, Buffer.alloc(BYTES, 7));
        await createTrackingOverlay({ overlay, image, isBlockDevice: false, bytes: BYTES });
        expect(readFileSync(image).equals(Buffer.alloc(BYTES, 7))).toBe(true);
        const info = JSON.parse(
          execFileSync(TOOLS[0] ?? '', ['info', '--output', 'json', overlay], { encoding: 'utf8' }),
        ) as QemuInfo;
        expect(info).toMatchObject({ format: 'qcow2', 'virtual-size': BYTES });
        expect(info['format-specific'].data).toMatchObject({ 'data-file': image, 'data-file-raw': true });
      },
    );

    test('what the guest writes through the overlay lands in the data', async () => {
      const image = join(root, 'disk.img');
      writeFileSync(image, Buffer.alloc(BYTES, 7));
      await createTrackingOverlay({ overlay, image, isBlockDevice: false, bytes: BYTES });
      execFileSync(TOOLS[1] ?? '', ['-f', 'qcow2', '-c', 'write -P 9 0 64k', overlay], { stdio: 'ignore' });
      expect(readFileSync(image).subarray(0, 65_536).equals(Buffer.alloc(65_536, 9))).toBe(true);
    });

    test('the daemon’s own words when it refuses', async () => {
      const missing = createTrackingOverlay({ overlay, image: join(root, 'none'), isBlockDevice: false, bytes: BYTES });
      await expect(missing).rejects.toThrow(/Could not open .*none/);
      const image = join(root, 'disk.img');
      writeFileSync(image, '');
      const odd = createTrackingOverlay({ overlay, image, isBlockDevice: false, bytes: 1 });
      await expect(odd).rejects.toThrow(/size/i);
    });
  },
);
