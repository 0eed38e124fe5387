import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path/posix';

import type { Vmi } from '@virtwire/vm-model';

import { downwardMetricsDisk } from '../converter/volume-paths.ts';
import type { DiskDeps } from './ports.ts';

const DISK_BYTES = 262_144;
const HEADER_BYTES = 16;
const MODE = 0o755;
const LOCKED = 1;
const READY = 0;
const EMPTY_METRICS = '<metrics></metrics>\n';

/**
 * The disk through which the guest reads metrics of its host, empty at first. Readers look at the lock in the header:
 * it is set before the content changes.
 *
 * @source KubeVirt v1.9.0 pkg/downwardmetrics/vhostmd
 */
export async function writeDownwardMetricsDisk(deps: Pick<DiskDeps, 'paths'>, vmi: Vmi): Promise<void> {
  if (!(vmi.spec.volumes ?? []).some(({ downwardMetrics }) => downwardMetrics !== undefined)) return;
  const path = downwardMetricsDisk(deps.paths);
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  const body = Buffer.from(EMPTY_METRICS);
  const file = await open(path, 'a+', MODE).then(async (created) => {
    await created.close();
    return open(path, 'r+');
  });
  try {
    await file.truncate(DISK_BYTES);
    await file.write(header(LOCKED, body), 0, HEADER_BYTES, 0);
    await file.sync();
    await file.write(body, 0, body.length, HEADER_BYTES);
    await file.write(header(READY, body), 0, HEADER_BYTES, 0);
  } finally {
    await file.close();
  }
}

function header(flag: number, body: Buffer): Buffer {
  const result = Buffer.alloc(HEADER_BYTES);
  result.write('mvbd', 0, 'latin1');
  result.writeInt32BE(flag, 4);
  result.writeInt32BE(
    body.reduce((sum, byte) => sum + byte, 0),
    8,
  );
  result.writeInt32BE(body.length, 12);
  return result;
}
