import { randomBytes } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';
import {
  collectStream,
  connect,
  DomainJobOperation,
  DomainMigrateFlags,
  DomainState,
  typedParams,
} from '../src/index.ts';
import type { Connection } from '../src/index.ts';
import { startPrivateDaemon, tinyDomainXml } from '../src/testing/index.ts';
import type { PrivateDaemon } from '../src/testing/index.ts';
import { describe, expect, test } from 'vitest';
import { eventually } from './harness.ts';

/** What only a real daemon can prove. */
export function realOnlySuite(): void {
  describe('libvirtd, read-only socket', () => {
    test('refuses calls that change something', async () => {
      await using daemon = await startPrivateDaemon();
      const socketPath = `${daemon.socketPath}-ro`;
      await using connection = await connect({ uri: daemon.uri, socketPath, readOnly: true });
      expect(await connection.listAllDomains()).toEqual([]);
      await expect(connection.defineDomainXml('<domain/>')).rejects.toMatchObject({
        code: 29,
        message: 'operation forbidden: read only access prevents virDomainDefineXMLFlags',
      });
    });
  });

  describe('libvirtd, volumes', () => {
    test('sends 24 MiB up, gets the same back, and answers calls meanwhile', async () => {
      await using daemon = await startPrivateDaemon();
      await using connection = await connectTo(daemon);
      const bytes = randomBytes(24 << 20);
      const vol = await createVolume(connection, daemon.directory, bytes.length);
      const range = { vol, offset: 0n, length: 0n, flags: 0 };
      const up = await connection.openStream('STORAGE_VOL_UPLOAD', range);
      const uploading = pipeline(Readable.from(chunksOf(bytes, 1_000_003)), up.stream);
      expect(await connection.getType()).toBe('QEMU');
      await uploading;
      const down = await connection.openStream('STORAGE_VOL_DOWNLOAD', range, { maxBufferedBytes: 64 << 20 });
      const [received, type] = await Promise.all([collectStream(down.stream), connection.getType()]);
      expect(type).toBe('QEMU');
      expect(Buffer.from(received).equals(bytes)).toBe(true);
    });

    test('gives the daemon’s error when a stream fails after its call has succeeded', async () => {
      await using daemon = await startPrivateDaemon();
      await using connection = await connectTo(daemon);
      const vol = await createVolume(connection, daemon.directory, 1 << 20);
      const up = await connection.openStream('STORAGE_VOL_UPLOAD', { vol, offset: 0n, length: 4_096n, flags: 0 });
      const failed = new Promise<Error>((resolve) => up.stream.once('error', resolve));
      up.stream.end(Buffer.alloc(1 << 20));
      expect(await failed).toMatchObject({ name: 'LibvirtError', kind: 'Daemon' });
      expect(await connection.getType()).toBe('QEMU');
    });
  });

  describe('two libvirtds', () => {
    test('migrate a running guest from one to the other, with its events, while other calls go on', async () => {
      await using source = await startPrivateDaemon({
        configuration: ['host_uuid = "11111111-1111-4111-8111-111111111111"'],
      });
      await using target = await startPrivateDaemon({
        configuration: ['host_uuid = "22222222-2222-4222-8222-222222222222"'],
      });
      await using from = await connectTo(source);
      await using to = await connectTo(target);
      const domain = await from.defineDomainXml(tinyDomainXml({ name: 'traveller' }));
      await domain.create();
      const lifecycle: string[] = [];
      const operations: (number | undefined)[] = [];
      let iterations = 0;
      await from.onDomainEvent('lifecycle', (event) =>
        lifecycle.push(`${String(event.event)}/${String(event.detail)}`),
      );
      await from.onDomainEvent('migrationIteration', () => iterations++);
      await from.onDomainEvent('jobCompleted', (event) => {
        operations.push(Number(event.params.find((param) => param.field === 'operation')?.value));
      });

      await using second = await from.duplicate();
      const { LIVE, PEER2PEER, PERSIST_DEST, UNSAFE } = DomainMigrateFlags;
      const params = typedParams({ migrate_uri: `unix://${target.directory}/migration`, bandwidth: 64n });
      const uri = `qemu+unix:///system?socket=${target.socketPath}`;
      const migrating = second.domain(domain.ref).migrateToUri(uri, params, LIVE | PEER2PEER | PERSIST_DEST | UNSAFE);
      expect(await from.getType()).toBe('QEMU');
      await migrating;
      expect((await domain.getState()).state).toBe(DomainState.SHUTOFF);
      const arrived = await to.lookupDomainByName('traveller');
      expect(await arrived.getState()).toEqual({ state: DomainState.RUNNING, reason: 2 });
      await eventually('the job’s end', () => operations.length === 1);
      expect(operations).toEqual([DomainJobOperation.MIGRATION_OUT]);
      expect(iterations).toBeGreaterThan(0);
      await eventually('the last lifecycle event', () => lifecycle.includes('5/3'));
      expect(lifecycle).toEqual(['3/1', '5/3']);
      const stats = await domain.getJobStats(1);
      expect(stats.params.bigint('memory_total')).toBeGreaterThan(0n);
      await arrived.destroy();
    });
  });
}

function connectTo(daemon: PrivateDaemon): Promise<Connection> {
  return connect({ uri: daemon.uri, socketPath: daemon.socketPath });
}

async function createVolume(connection: Connection, directory: string, bytes: number) {
  const poolXml = `<pool type='dir'><name>p</name><target><path>${directory}</path></target></pool>`;
  const { pool } = await connection.call('STORAGE_POOL_CREATE_XML', { xml: poolXml, flags: 0 });
  const xml = `<volume><name>v.img</name><capacity unit='bytes'>${String(bytes)}</capacity><target><format type='raw'/></target></volume>`;
  return (await connection.call('STORAGE_VOL_CREATE_XML', { pool, xml, flags: 0 })).vol;
}

function* chunksOf(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
