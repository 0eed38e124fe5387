import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeDaemon } from '../src/fake/index.ts';
import type { Harness } from './harness.ts';
import { libvirtSuite } from './suite.ts';

libvirtSuite({
  title: 'fake daemon',
  start: async (): Promise<Harness> => {
    const directory = mkdtempSync(join(tmpdir(), 'fake-libvirt-itest-'));
    const daemon = await startFakeDaemon({ socketPath: join(directory, 'libvirt-sock') });
    return {
      connectOptions: { uri: daemon.uri, socketPath: daemon.socketPath },
      directory,
      kill: () => daemon.crash(),
      start: () => daemon.start(),
      pause: () => daemon.pause(),
      resume: () => daemon.resume(),
      killQemu: (name) => daemon.domain(name).killQemu(),
      [Symbol.asyncDispose]: async () => {
        await daemon.close();
        rmSync(directory, { recursive: true });
      },
    };
  },
});
