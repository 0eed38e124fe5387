import { linkSync, mkdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';

/** A socket file that nobody listens on. Node removes the file of a server that it closes: a second name keeps it. */
export async function leaveDeadSocket(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  linkSync(path, `${path}.keep`);
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  linkSync(`${path}.keep`, path);
  rmSync(`${path}.keep`);
}
