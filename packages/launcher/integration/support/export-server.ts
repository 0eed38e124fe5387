/**
 * An export server for one backup: `export-server.ts DIR EXPORT BITMAP` takes a launcher's tunnel, maps and reads the
 * export, and leaves `DIR/pulled.img` and `DIR/extents.json`. It prints its port, then `done`.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import type { Http2SecureServer, ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connectNbd } from '@virtwire/shared-proto/nbd';
import type { Extent, NbdClient } from '@virtwire/shared-proto/nbd';

/** Name that the server's certificate shows. */
const SERVER_NAME = 'export.test';

function openssl(dir: string, ...args: readonly string[]): void {
  execFileSync('/usr/bin/openssl', args, { cwd: dir, stdio: 'pipe' });
}

function createCertificate(dir: string, name: string, subject: string): void {
  const request = [
    'req',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    `/CN=${subject}`,
  ];
  openssl(dir, ...request, '-keyout', `${name}.key`, '-out', `${name}.csr`);
  const authority = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];
  writeFileSync(join(dir, `${name}.ext`), `subjectAltName=DNS:${subject}\n`);
  openssl(dir, 'x509', '-req', '-in', `${name}.csr`, ...authority, '-extfile', `${name}.ext`, '-out', `${name}.crt`);
}

/** Makes an authority, and certificates of a server and of a launcher. */
export function createCertificates(dir: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'ca.key'];
  openssl(dir, 'req', '-x509', ...key, '-subj', '/CN=ca.test', '-days', '2', '-out', 'ca.crt');
  createCertificate(dir, 'server', SERVER_NAME);
  createCertificate(dir, 'launcher', 'launcher.test');
}

/** What a request for an export carries beside the backup's name. */
export function exportOptions(dir: string, port: number): Readonly<Record<string, string>> {
  const read = (file: string): string => readFileSync(join(dir, file), 'utf8');
  return {
    ...{ exportServerAddr: `127.0.0.1:${port}`, exportServerName: SERVER_NAME },
    ...{ backupCert: read('launcher.crt'), backupKey: read('launcher.key'), caCert: read('ca.crt') },
  };
}

/** An export server that listens. */
export interface ExportServer extends Disposable {
  readonly port: number;
  /** Tunnels that were opened. */
  readonly tunnels: readonly ServerHttp2Stream[];
}

/** Listens on this machine. @param onTunnel gets a client for each tunnel. */
export async function startExportServer(dir: string, onTunnel: (client: NbdClient) => void): Promise<ExportServer> {
  const read = (file: string): Buffer => readFileSync(join(dir, file));
  const server: Http2SecureServer = createSecureServer({
    ...{ key: read('server.key'), cert: read('server.crt'), ca: read('ca.crt') },
    ...{ requestCert: true, rejectUnauthorized: true },
  });
  const tunnels: ServerHttp2Stream[] = [];
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    if (headers[':method'] !== 'CONNECT') {
      stream.respond({ ':status': 405 }, { endStream: true });
      return;
    }
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200 });
    tunnels.push(stream);
    onTunnel(connectNbd(stream));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    tunnels,
    [Symbol.dispose]() {
      for (const tunnel of tunnels) tunnel.session?.destroy();
      server.close();
    },
  };
}

/** All extents of an export. @param bitmap empty for a whole backup. */
export async function mapExport(client: NbdClient, name: string, bitmap: string): Promise<readonly Extent[]> {
  const extents: Extent[] = [];
  for await (const answer of client.map({ export_name: name, bitmap_name: bitmap })) extents.push(...answer.extents);
  return extents;
}

/** All bytes of an export. */
export async function readExport(client: NbdClient, name: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const { data } of client.read({ export_name: name })) chunks.push(data);
  return Buffer.concat(chunks);
}

async function pull(dir: string, name: string, bitmap: string): Promise<void> {
  const client = Promise.withResolvers<NbdClient>();
  using server = await startExportServer(dir, (connected) => client.resolve(connected));
  process.stdout.write(`${server.port}\n`);
  using connected = await client.promise;
  const extents = await mapExport(connected, name, bitmap);
  const plain = extents.map((extent) => ({ ...extent, offset: Number(extent.offset), length: Number(extent.length) }));
  writeFileSync(
    join(dir, 'extents.json'),
    JSON.stringify(plain.map((extent) => ({ ...extent, flags: Number(extent.flags) }))),
  );
  writeFileSync(join(dir, 'pulled.img'), await readExport(connected, name));
  process.stdout.write('done\n');
}

const [script, dir, name, bitmap] = process.argv.slice(1);
if (script === import.meta.filename && dir !== undefined && name !== undefined) await pull(dir, name, bitmap ?? '');
