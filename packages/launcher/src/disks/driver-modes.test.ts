import { describe, expect, test } from 'vitest';

import { createLogger } from '@virtwire/telemetry';
import type { DomainDisk } from '@virtwire/vm-model';

import { backendPath } from '../converter/disk-backend.ts';
import { withDriverMode } from './driver-modes.ts';
import type { ImagePort } from './ports.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const FULL = { format: 'raw', backingFile: '', virtualSize: 10, actualSize: 10 };
const SPARSE = { ...FULL, actualSize: 1 };

function storage(change: Partial<ImagePort>): { readonly images: ImagePort; readonly log: typeof log } {
  return {
    log,
    images: {
      info: async () => SPARSE,
      hasDirectIo: async () => true,
      freeBytes: async () => 0n,
      storedBytes: async () => 0n,
      ...change,
    },
  };
}

const file = (change: Partial<DomainDisk> = {}): DomainDisk => ({
  Device: 'disk',
  Source: { File: '/a' },
  Driver: { Name: 'qemu' },
  ...change,
});

describe('cache and IO modes', () => {
  test.each<[string, DomainDisk, Partial<ImagePort>, string | undefined, string | undefined]>([
    ['a sparse image: no cache, threads by default', file(), {}, 'none', undefined],
    ['a whole image: native IO', file(), { info: async () => FULL }, 'none', 'native'],
    ['a block device: native IO', file({ Source: { Dev: '/dev/a' } }), {}, 'none', 'native'],
    [
      'an image that nobody can read: threads',
      file(),
      { info: () => Promise.reject(new Error('x')) },
      'none',
      undefined,
    ],
    [
      'a file system without O_DIRECT: writethrough',
      file(),
      { hasDirectIo: async () => false },
      'writethrough',
      undefined,
    ],
    [
      'a failing test counts as unsupported',
      file(),
      { hasDirectIo: () => Promise.reject(new Error('x')) },
      'writethrough',
      undefined,
    ],
    ['a wish is kept', file({ Driver: { Cache: 'writeback', IO: 'threads' } }), {}, 'writeback', 'threads'],
    ['an empty CD-ROM drive has none', { Device: 'cdrom', Source: {}, Driver: {} }, {}, undefined, undefined],
    [
      'the backing file must take it too',
      file({ BackingStore: { Source: { File: '/base' } } }),
      { hasDirectIo: async (path) => path !== '/base' },
      'writethrough',
      undefined,
    ],
  ])('%s', async (_title, disk, images, cache, io) => {
    const { Driver } = await withDriverMode(storage(images), disk);
    expect([Driver?.Cache, Driver?.IO]).toEqual([cache, io]);
  });

  test('cache none on a file system without O_DIRECT is refused with the path', async () => {
    const disk = file({ Driver: { Cache: 'none' } });
    await expect(withDriverMode(storage({ hasDirectIo: async () => false }), disk)).rejects.toThrow(
      "Unable to use 'none' cache mode, file system where /a is stored does not support direct I/O",
    );
  });

  test('a disk without a source is refused', async () => {
    await expect(withDriverMode(storage({}), { Device: 'disk', Source: {}, Driver: {} })).rejects.toThrow(
      'unable to set a driver cache mode, disk has no backend path',
    );
  });

  test('the data of a tracked disk lie in its data store', () => {
    expect(backendPath({ Source: { File: '/o.qcow2', DataStore: { Source: { Dev: '/dev/a' } } } })).toBe('/dev/a');
  });
});
