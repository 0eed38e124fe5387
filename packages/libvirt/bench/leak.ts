import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { connect } from '../src/index.ts';
import { startFakeDaemon } from '../src/fake/index.ts';

const OPERATIONS = 100_000;
const LOSSES = 500;
const STEPS = 5;

interface Sample {
  readonly heapMiB: number;
  readonly rssMiB: number;
  readonly descriptors: number;
}

/**
 * Client and fake daemon in one process: calls with events and subscriptions, then losses of the connection; prints
 * memory and descriptors on the way. What they hold at the end must be what they held after the first step.
 */
export async function printLeaks(): Promise<void> {
  await using daemon = await startFakeDaemon();
  await using connection = await connect({
    socketPath: daemon.socketPath,
    reconnect: { initialDelayMs: 1, maxDelayMs: 1 },
  });
  const guest = daemon.hypervisor.define("<domain type='qemu'><name>g</name><os><type>hvm</type></os></domain>");
  guest.start(false);
  const domain = await connection.lookupDomainByName('g');
  await connection.onDomainEvent('lifecycle', () => undefined);
  print('| after | heap MiB | RSS MiB | descriptors |\n| --- | ---: | ---: | ---: |');
  for (let step = 1; step <= STEPS; step++) {
    for (let i = 0; i < OPERATIONS / STEPS; i += 10) {
      await Promise.all(Array.from({ length: 7 }, () => domain.getInfo()));
      await domain.suspend();
      await domain.resume();
      await (await connection.onDomainEvent('reboot', () => undefined)).close();
    }
    printSample(`${String((OPERATIONS / STEPS) * step)} operations`, sample());
  }
  for (let i = 0; i < LOSSES; i++) {
    const restored = new Promise<void>((resolve) => {
      const listening = connection.onConnectionEvent((event) => {
        if (event.kind !== 'reconnected') return;
        listening[Symbol.dispose]();
        resolve();
      });
    });
    daemon.disconnectClients();
    await restored;
  }
  printSample(`${String(LOSSES)} losses more`, sample());
}

/** Without a collection first, the heap says how long ago the last one was. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

function sample(): Sample {
  collectGarbage();
  const { heapUsed, rss } = process.memoryUsage();
  return { heapMiB: heapUsed / 2 ** 20, rssMiB: rss / 2 ** 20, descriptors: readdirSync('/proc/self/fd').length };
}

function printSample(what: string, { heapMiB, rssMiB, descriptors }: Sample): void {
  print(`| ${what} | ${heapMiB.toFixed(1)} | ${rssMiB.toFixed(0)} | ${String(descriptors)} |`);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
