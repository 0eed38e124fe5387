/** The handler under measurement: real wire, sockets and pipes; network and devices do nothing. */
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';
import { createLogger } from '@virtwire/telemetry';
import { createHandler, createStoreSource, DEFAULT_HANDLER_CONFIG } from '../src/index.ts';
import { FileStore } from '../integration/support/file-store.ts';

const root = process.argv[2] ?? '';
const privateDir = process.argv[3] ?? '';
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const pids = JSON.parse(readFileSync(`${root}/pids.json`, 'utf8')) as Readonly<Record<string, number>>;
let writes = 0;
const log = createLogger('virt-handler');
const store = new FileStore(`${root}/vmis`, (vmi) => {
  writes += 1;
  if (vmi.status?.phase === 'Running') say({ running: vmi.metadata.name, atMs: Date.now() });
});
const handler = createHandler(
  {
    source: createStoreSource({ store, log }, 'node01'),
    log,
    events: { event: () => undefined },
    parts: {
      network: {
        setUp: async () => undefined,
        tearDown: async () => undefined,
        podInterface: async () => ({ podIP: '10.0.2.2', podIPs: ['10.0.2.2'] }),
      },
      devices: { prepare: async () => undefined },
      async detectIsolation(socket) {
        const pid = pids[socket] ?? 0;
        return { pid, ppid: 1, rootPath: `/proc/${String(pid)}/root` };
      },
    },
  },
  {
    ...DEFAULT_HANDLER_CONFIG,
    nodeName: 'node01',
    shareDir: `${root}/share`,
    privateDir,
    podsDir: `${root}/p`,
  },
);
await handler.start();
say({ up: true, atMs: Date.now() });
createInterface({ input: process.stdin }).on('line', () => {
  const { user, system } = process.cpuUsage();
  say({ rssMiB: process.memoryUsage().rss / 2 ** 20, cpuMs: (user + system) / 1_000, writes });
});
