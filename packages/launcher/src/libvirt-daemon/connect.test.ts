import { createServer } from 'node:net';
import { startFakeDaemon } from '@virtwire/libvirt/fake';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, expect, test, vi } from 'vitest';
import { connectToDaemon } from './connect.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const HOUR_MS = 3_600_000;
/** More than pauses that grow to seconds leave room for while the test waits. */
const MANY_TRIES = 15;

afterEach(() => void vi.useRealTimers());

test('a daemon that is away for an hour costs no VM: it is looked for often, and the connection is there again when it is', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const daemon = await startFakeDaemon({ uri: 'qemu:///session' });
  await using connection = await connectToDaemon(daemon.socketPath, true, 'libvirtd', log);
  await daemon.crash();
  await expect.poll(() => connection.state, { timeout: 20_000 }).toBe('reconnecting');
  vi.advanceTimersByTime(HOUR_MS);
  let tries = 0;
  const deaf = createServer((socket) => {
    tries++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => deaf.listen(daemon.socketPath, resolve));
  await expect.poll(() => tries, { timeout: 20_000 }).toBeGreaterThan(MANY_TRIES);
  await new Promise((resolve) => deaf.close(resolve));
  await daemon.start();
  await expect.poll(() => connection.state, { timeout: 20_000 }).toBe('open');
  expect(await connection.listAllDomains()).toEqual([]);
  await daemon.close();
});
