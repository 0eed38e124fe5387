import { connect } from 'node:net';

/** A connection to a server that is not there yet is tried again. */
const RETRY_MS = 200;

function exchange(socketPath: string, xml: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ path: socketPath, signal });
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => (answer += chunk));
    socket.on('error', reject);
    socket.on('end', () => resolve(answer));
    socket.end(xml);
  });
}

function isMissing(caught: unknown): boolean {
  return caught instanceof Error && 'code' in caught && (caught.code === 'ENOENT' || caught.code === 'ECONNREFUSED');
}

/**
 * Asks the launcher of this pod for the description of an incoming domain.
 *
 * @param limitMs for the connection and the exchange together.
 * @throws {Error} when there is no launcher, no answer in time, or an empty one
 * @source KubeVirt v1.9.0 cmd/libvirt-hook-client
 */
export async function askHookServer(socketPath: string, xml: string, limitMs: number): Promise<string> {
  const signal = AbortSignal.timeout(limitMs);
  for (;;) {
    try {
      const answer = await exchange(socketPath, xml, signal);
      if (answer === '') throw new Error('the launcher refuses the incoming domain');
      return answer;
    } catch (caught) {
      if (!isMissing(caught)) throw caught;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    signal.throwIfAborted();
  }
}
