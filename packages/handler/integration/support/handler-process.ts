/**
 * A handler over a directory of VMI files, as a process of its own, with node-side parts that only say what they do and
 * take their time: so that a test can end it at any step.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '@virtwire/telemetry';
import { createHandler, createStoreSource, DEFAULT_HANDLER_CONFIG } from '../../src/index.ts';
import type { NodeParts } from '../../src/index.ts';
import { FileStore } from './file-store.ts';

interface Settings {
  readonly root: string;
  readonly stepMs: number;
  readonly watchdogTimeoutMs?: number;
  readonly resyncMs?: number;
}

const settings = JSON.parse(process.argv[2] ?? '{}') as Settings;
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const step = async (name: string): Promise<void> => {
  say({ step: name });
  await sleep(settings.stepMs);
};

const parts: Partial<NodeParts> = {
  network: {
    setUp: () => step('network'),
    tearDown: async () => say({ step: 'tearDown' }),
    podInterface: async () => ({ podIP: '10.0.2.2', podIPs: ['10.0.2.2'] }),
  },
  devices: { prepare: () => step('devices') },
};

const log = createLogger('virt-handler');
const store = new FileStore(`${settings.root}/vmis`, (vmi) => say({ write: vmi.status?.phase ?? '' }));
const source = createStoreSource({ store, log }, 'node01');
const handler = createHandler(
  {
    source,
    log,
    parts,
    events: { event: (object, type, reason, message) => say({ k8s: reason, type, message, name: object.name }) },
  },
  {
    ...DEFAULT_HANDLER_CONFIG,
    nodeName: 'node01',
    shareDir: `${settings.root}/share`,
    privateDir: `${settings.root}/private`,
    podsDir: `${settings.root}/p`,
    watchdogTimeoutMs: settings.watchdogTimeoutMs ?? 30_000,
    domainResyncPeriodMs: settings.resyncMs ?? 300_000,
    health: `${settings.root}/health.sock`,
  },
);
await handler.start();
say({ up: true });
process.once('SIGTERM', () => {
  void handler.stop().then(() => {
    source[Symbol.dispose]();
    process.exitCode = 0;
    say({ stopped: true });
    process.stdin.destroy();
  });
});
