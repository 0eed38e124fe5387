import { text } from 'node:stream/consumers';
import { askHookServer } from './migration/hook-client.ts';

/** Where the launcher of a pod listens for libvirt's hook. */
const SOCKET = '/var/run/kubevirt/migration-hook-socket';
const LIMIT_MS = 30_000;

try {
  process.stdout.write(await askHookServer(SOCKET, await text(process.stdin), LIMIT_MS));
} catch (caught) {
  process.stderr.write(`libvirt-hook-client: ${String(caught)}\n`);
  process.exitCode = 1;
}
