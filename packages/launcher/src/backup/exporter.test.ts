import { getEventListeners } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { systemClock } from '../config/clock.ts';
import { createBackupExporter } from './exporter.ts';
import type { BackupExport } from './request.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const request = { name: 'b1', startTime: '2000-01-01T00:00:00Z', address: '127.0.0.1:1' } as BackupExport;

test('an export server that hangs up again and again leaves nobody who listens for the end', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'virtwire-exporter-'));
  const nbdSocket = join(dir, 'socket');
  writeFileSync(nbdSocket, '');
  const signals: AbortSignal[] = [];
  const listeners: number[] = [];
  const exporter = createBackupExporter({
    clock: { ...systemClock, sleep: (_ms, signal) => systemClock.sleep(1, signal) },
    nbdSocket,
    openTunnel(_request, signal) {
      signals.push(signal);
      listeners.push(getEventListeners(signal, 'abort').length);
      const stream = new PassThrough();
      setImmediate(() => stream.destroy());
      return Promise.resolve({ stream, [Symbol.dispose]: () => stream.destroy() });
    },
  });
  try {
    await exporter.start(request, log);
    await expect.poll(() => signals.length, { timeout: 20_000 }).toBeGreaterThan(30);
    expect(new Set(signals).size).toBe(1);
    expect(Math.max(...listeners)).toBeLessThan(5);
  } finally {
    exporter.stop();
    rmSync(dir, { recursive: true });
  }
});
