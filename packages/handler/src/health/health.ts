import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { once } from 'node:events';

/** What `/healthz` says. */
export interface HealthFacts {
  readonly launchers: number;
  readonly queued: number;
  readonly isServingEvents: boolean;
}

/** Where to listen: the path of a unix socket, or `host:port`. */
export type HealthAddress = string;

function listenOn(server: Server, address: HealthAddress): void {
  const at = address.startsWith('/') ? -1 : address.lastIndexOf(':');
  if (at < 0) server.listen(address);
  else server.listen(Number(address.slice(at + 1)), address.slice(0, at));
}

/**
 * Serves `GET /healthz` as JSON: 200 while events are served, else 500. It answers before anything else is ready.
 *
 * @returns stops the server when disposed of.
 */
export async function serveHealth(address: HealthAddress, facts: () => HealthFacts): Promise<AsyncDisposable> {
  if (address.startsWith('/')) await rm(address, { force: true });
  const server = createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/healthz') {
      response.writeHead(404).end('404: Page Not Found');
      return;
    }
    const now = facts();
    response.writeHead(now.isServingEvents ? 200 : 500, { 'content-type': 'application/json' });
    response.end(`${JSON.stringify(now)}\n`);
  });
  listenOn(server, address);
  await once(server, 'listening');
  return {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
