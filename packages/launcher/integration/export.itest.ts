import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import type { NbdClient } from '@virtwire/shared-proto/nbd';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createBackupExporter } from '../src/backup/exporter.ts';
import type { BackupExporter } from '../src/backup/exporter.ts';
import type { BackupExport } from '../src/backup/request.ts';
import { systemClock } from '../src/config/clock.ts';
import {
  createCertificates,
  exportOptions,
  mapExport,
  readExport,
  startExportServer,
} from './support/export-server.ts';
import type { ExportServer } from './support/export-server.ts';
import { eventually } from './support/sandbox.ts';

const TOOLS = ['/usr/bin/openssl', '/usr/bin/qemu-img', '/usr/bin/qemu-io', '/usr/bin/qemu-nbd'];
const obstacle = TOOLS.filter((tool) => !existsSync(tool)).join(', ');
const MIB = 1024 * 1024;
const SIZE = 16 * MIB;

/** A request of the handler. */
function requestOf(dir: string, port: number): BackupExport {
  const options = exportOptions(dir, port);
  return {
    ...{ name: 'b1', startTime: '2026-01-01T00:00:00Z', address: options['exportServerAddr'] ?? '' },
    ...{ serverName: options['exportServerName'] ?? '', certificate: options['backupCert'] ?? '' },
    ...{ key: options['backupKey'] ?? '', ca: options['caCert'] ?? '' },
  };
}

describe.skipIf(obstacle !== '')(`exports over TLS ${obstacle === '' ? '' : `(missing: ${obstacle})`}`, () => {
  let dir: string;
  let nbd: ChildProcess;
  let exporter: BackupExporter;
  let server: ExportServer;
  const lines: string[] = [];
  const clients: NbdClient[] = [];
  const log = createLogger('virt-launcher', { destination: { write: (line: string) => void lines.push(line) } });
  const socket = (): string => join(dir, 'nbd.sock');
  const tunnel = (number: number): Promise<NbdClient> => eventually(`tunnel ${number}`, () => clients[number - 1]);

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'virtwire-export-'));
    lines.length = 0;
    clients.length = 0;
    const image = join(dir, 'disk.qcow2');
    const io = (command: string): void => void execFileSync('/usr/bin/qemu-io', ['-f', 'qcow2', '-c', command, image]);
    execFileSync('/usr/bin/qemu-img', ['create', '-f', 'qcow2', image, String(SIZE)]);
    io(`write -P 7 0 ${MIB}`);
    execFileSync('/usr/bin/qemu-img', ['bitmap', '--add', image, 'since']);
    io(`write -P 9 ${4 * MIB} ${MIB}`);
    io(`write -z ${8 * MIB} ${MIB}`);
    const flags = [
      '--read-only',
      '--persistent',
      '--shared=8',
      '--format=qcow2',
      '--bitmap=since',
      '--export-name=data',
    ];
    nbd = spawn('/usr/bin/qemu-nbd', [...flags, '--allocation-depth', `--socket=${socket()}`, image], {
      stdio: 'inherit',
    });
    await eventually('the NBD server', () => existsSync(socket()));
    createCertificates(dir);
    server = await startExportServer(dir, (client) => clients.push(client));
    exporter = createBackupExporter({ clock: systemClock, nbdSocket: socket() });
  });

  afterEach(() => {
    exporter.stop();
    server[Symbol.dispose]();
    nbd.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });

  test('the bytes of a disk, its holes, and what changed', async () => {
    await exporter.start(requestOf(dir, server.port), log);
    const client = await tunnel(1);
    const raw = join(dir, 'raw.img');
    execFileSync('/usr/bin/qemu-img', ['convert', '-U', '-O', 'raw', join(dir, 'disk.qcow2'), raw]);
    expect((await readExport(client, 'data')).equals(readFileSync(raw))).toBe(true);
    const shown = async (bitmap: string): Promise<readonly string[]> =>
      (await mapExport(client, 'data', bitmap)).map(
        ({ offset, length, description }) => `${Number(offset) / MIB}+${Number(length) / MIB} ${description}`,
      );
    expect(await shown('')).toEqual(['0+1 data', '1+3 hole,zero', '4+1 data', '5+11 hole,zero']);
    expect(await shown('since')).toEqual([
      ...['0+1 clean', '1+3 zero', '4+1 dirty', '5+3 zero', '8+1 dirty,zero', '9+7 zero'],
    ]);
  });

  test('what is not there, in KubeVirt’s words', async () => {
    await exporter.start(requestOf(dir, server.port), log);
    const client = await tunnel(1);
    await expect(mapExport(client, 'data', 'none')).rejects.toMatchObject({
      detail: 'server does not support requested context: qemu:dirty-bitmap:none',
    });
    await expect(readExport(client, 'none')).rejects.toMatchObject({
      detail: expect.stringContaining('none') as string,
    });
    const beyond = client.read({ export_name: 'data', offset: BigInt(SIZE) })[Symbol.asyncIterator]();
    await expect(beyond.next()).rejects.toMatchObject({ detail: `offset ${SIZE} is beyond export size ${SIZE}` });
  });

  test('a tunnel that is cut comes back', async () => {
    await exporter.start(requestOf(dir, server.port), log);
    await tunnel(1);
    server.tunnels[0]?.session?.destroy();
    expect((await readExport(await tunnel(2), 'data')).length).toBe(SIZE);
  });

  test('a server with another name or of another authority hears nothing', async () => {
    const request = requestOf(dir, server.port);
    await exporter.start({ ...request, serverName: 'other.test' }, log);
    await eventually('the refusal', () => lines.some((line) => /other\.test.*connection lost, retrying/.test(line)));
    const other = mkdtempSync(join(tmpdir(), 'virtwire-export-'));
    try {
      createCertificates(other);
      const { ca } = requestOf(other, server.port);
      await exporter.start({ ...request, name: 'b2', ca }, log);
      await eventually('the refusal', () => lines.some((line) => /certificate.*connection lost, retrying/.test(line)));
    } finally {
      rmSync(other, { recursive: true });
    }
    expect(clients).toEqual([]);
  });

  test('the same backup again is the same tunnel; another one ends it', async () => {
    const request = requestOf(dir, server.port);
    await exporter.start(request, log);
    await tunnel(1);
    await exporter.start(request, log);
    await exporter.start({ ...request, name: 'b2' }, log);
    await tunnel(2);
    await eventually('the end of the first', () => server.tunnels[0]?.closed === true);
    expect(clients).toHaveLength(2);
  });

  test('an export ends with the socket, and does not begin without one', async () => {
    const request = requestOf(dir, server.port);
    await exporter.start(request, log);
    await tunnel(1);
    rmSync(socket());
    await eventually('the end', () => server.tunnels[0]?.closed === true);
    await expect(exporter.start(request, log)).rejects.toThrow(
      `cannot initialize backup tunnel: stat ${socket()}: no such file or directory`,
    );
  });
});
