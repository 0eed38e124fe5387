import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError } from '../errors.ts';

/** No domain is as large. */
const REQUEST_LIMIT_BYTES = 16 << 20;
const REQUEST_LIMIT_MS = 30_000;
const END_OF_DOMAIN = /<\/domain>\s*$/;

/** Changes the description of an incoming domain. */
export type DomainEdit = (xml: string) => Promise<string>;

/** Answers libvirt's hook on a migration target. */
export interface HookServer {
  /**
   * Listens for the one call of the next migration; a server that waits already takes the new edit.
   *
   * @throws {LauncherError} `MigrationFailed` when it cannot listen
   */
  start(edit: DomainEdit): Promise<void>;
  /** Listens no more, and removes the socket. */
  stop(): void;
}

/** The request ends with the domain, or where the client writes no more. */
function readRequest(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(REQUEST_LIMIT_MS, () => reject(new Error('the hook sent no whole domain in time')));
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > REQUEST_LIMIT_BYTES) reject(new Error('the domain of the hook is too large'));
      else if (END_OF_DOMAIN.test(text.slice(-64))) resolve(text);
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the hook went away')));
  });
}

/**
 * Creates the server, at rest. It serves one connection, as libvirt calls its hook once per migration, and ends then;
 * what cannot be answered is closed without a word, which makes libvirt refuse the migration.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/premigration-hook-server/server.go
 */
export function createHookServer(socketPath: string, log: Logger): HookServer {
  let server: Server | undefined;
  let edit: DomainEdit = (xml) => Promise.resolve(xml);

  function stop(): void {
    const old = server;
    server = undefined;
    if (old === undefined) return;
    old.close();
    rmSync(socketPath, { force: true });
  }

  async function serve(socket: Socket): Promise<void> {
    stop();
    try {
      const answer = await edit(await readRequest(socket));
      await new Promise<void>((resolve) => socket.end(answer, resolve));
      log.info('the incoming domain was adapted to this pod');
    } catch (caught) {
      log.error({ reason: caught }, 'failed to adapt the incoming domain');
    } finally {
      socket.destroy();
    }
  }

  return {
    async start(next) {
      edit = next;
      if (server !== undefined) return;
      const created = createServer({ allowHalfOpen: true }, (socket) => {
        if (server === created) void serve(socket);
        else socket.destroy();
      });
      try {
        rmSync(socketPath, { force: true });
        await new Promise<void>((resolve, reject) => {
          created.once('error', reject);
          created.listen(socketPath, resolve);
        });
      } catch (caught) {
        throw LauncherError.from(caught, 'MigrationFailed', 'failed to start the migration hook server: ');
      }
      created.on('error', (caught) => log.error({ reason: caught }, 'the migration hook server failed'));
      created.unref();
      server = created;
    },
    stop,
  };
}
