import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const CONNECT_MS = 2_000;
const STEP_MS = 100;

/** Asks a web server for its first page over one TCP connection. */
function fetchPage(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    let text = '';
    socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error(`no answer from ${host}:${port}`)));
    socket.once('connect', () => socket.write(`GET / HTTP/1.0\r\nHost: ${host}\r\n\r\n`));
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.once('error', reject);
    socket.once('close', () => resolve(text.split('\r\n\r\n')[1]?.trim() ?? ''));
  });
}

/** The guest's page, asked for until it answers: its server starts with its network. */
export async function readGuestPage(host: string, port: number, timeoutMs: number): Promise<string> {
  for (const deadline = Date.now() + timeoutMs; ;) {
    try {
      const page = await fetchPage(host, port);
      if (page !== '') return page;
    } catch (caught) {
      if (Date.now() > deadline) throw caught;
    }
    if (Date.now() > deadline) throw new Error(`no page from ${host}:${port}`);
    await sleep(STEP_MS);
  }
}
