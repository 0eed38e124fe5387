import type { Duplex } from 'node:stream';
import { DomainConsoleFlags, DomainCreateFlags } from '../src/index.ts';
import type { LibvirtError } from '../src/index.ts';
import { describe, expect, test } from 'vitest';
import { domainXml, useDaemon } from './fixture.ts';
import { eventually } from './harness.ts';
import type { HarnessKind } from './harness.ts';

/** Streams both ways, their ends and errors. */
export function testStreams(kind: HarnessKind): void {
  describe('streams', () => {
    const daemon = useDaemon(kind);

    test('takes a screenshot', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('shot'));
      await domain.create();
      const { mime, data } = await domain.screenshot();
      expect(mime).toBe('image/png');
      expect(Buffer.from(data).toString('latin1', 1, 4)).toBe('PNG');
      expect(await connection.getType()).toBe('QEMU');
    });

    test('opens a console, refuses a second one, and closes so that it can be opened again', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('con'));
      await domain.create(DomainCreateFlags.START_PAUSED);
      const first = await domain.openConsole();
      first.resume();
      await expect(domain.openConsole()).rejects.toMatchObject({
        message: 'operation failed: Active console session exists for this domain',
      });
      await expect(domain.openConsole('nope')).rejects.toMatchObject({
        message: 'internal error: cannot find character device nope',
      });
      first.write('a\r');
      await closed(first, () => first.end());
      const again = await domain.openConsole();
      again.resume();
      await closed(again, () => again.destroy());
      const forced = await domain.openConsole(null, DomainConsoleFlags.FORCE);
      await closed(forced, () => forced.destroy());
    });

    test('ends the console when the guest stops', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('end'));
      await domain.create(DomainCreateFlags.START_PAUSED);
      const console = await domain.openConsole();
      let hasEnded = false;
      console.on('end', () => {
        hasEnded = true;
      });
      console.resume();
      await domain.destroy();
      await eventually('the end of data', () => hasEnded);
      expect(await connection.getType()).toBe('QEMU');
    });

    test('fails the stream when the connection is lost', async () => {
      const connection = await daemon.connect({ reconnect: false });
      const domain = await connection.defineDomainXml(domainXml('lost'));
      await domain.create(DomainCreateFlags.START_PAUSED);
      const stream = await domain.openConsole();
      const failed = new Promise<LibvirtError>((resolve) => stream.once('error', resolve));
      await daemon.harness.kill();
      expect(await failed).toMatchObject({ kind: 'ConnectionLost' });
      await daemon.harness.start();
    });
  });
}

function closed(stream: Duplex, action: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.once('close', resolve);
    stream.once('error', reject);
    action();
  });
}
