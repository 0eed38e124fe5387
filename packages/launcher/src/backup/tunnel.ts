import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { LauncherError, textOf } from '../errors.ts';
import type { BackupExport } from './request.ts';

const DIAL_LIMIT_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;
const HTTP_OK = 200;

/** A connection through an export server to whoever wants to read the backup. */
export interface Tunnel extends Disposable {
  readonly stream: Duplex;
}

/** `host:port`, the host in brackets if it holds colons. */
function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(`https://${address}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 443 : Number(port) };
}

async function dial(request: BackupExport, signal: AbortSignal): Promise<TLSSocket> {
  const { serverName: servername, ca, certificate: cert, key } = request;
  const socket = connectTls({ ...splitAddress(request.address), servername, ca, cert, key, ALPNProtocols: ['h2'] });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.any([signal, AbortSignal.timeout(DIAL_LIMIT_MS)]) });
    if (socket.alpnProtocol !== 'h2') throw new Error('the server does not speak HTTP/2');
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    return socket;
  } catch (caught) {
    socket.on('error', () => undefined);
    socket.destroy();
    throw caught;
  }
}

async function openStream(
  session: ClientHttp2Session,
  authority: string,
  signal: AbortSignal,
): Promise<ClientHttp2Stream> {
  const stream = session.request({ ':method': 'CONNECT', ':authority': authority });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(DIAL_LIMIT_MS)]);
  const [headers] = (await once(stream, 'response', { signal: limit })) as [Readonly<Record<string, unknown>>];
  if (headers[':status'] !== HTTP_OK) throw new Error(`server rejected CONNECT: ${String(headers[':status'])}`);
  return stream;
}

/**
 * Connects to an export server: TLS with certificates of both sides, HTTP/2, CONNECT.
 *
 * @throws {LauncherError} `BackupFailed`
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup_tunnel.go
 */
export async function openTunnel(request: BackupExport, signal: AbortSignal): Promise<Tunnel> {
  let session: ClientHttp2Session | undefined;
  try {
    const socket = await dial(request, signal);
    session = connectHttp2(`https://${request.address}`, { createConnection: () => socket });
    const opened = session;
    // Whoever waits for the stream hears of it.
    opened.on('error', () => undefined);
    const stream = await openStream(opened, request.address, signal);
    return { stream, [Symbol.dispose]: () => opened.destroy() };
  } catch (caught) {
    session?.destroy();
    const text = caught instanceof DOMException && caught.name === 'TimeoutError' ? 'i/o timeout' : textOf(caught);
    throw new LauncherError('BackupFailed', `connect tunnel: ${text}`, { cause: caught });
  }
}
