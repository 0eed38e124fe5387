import { connect, ErrorDomain, ErrorNumber, LibvirtError } from '../src/index.ts';
import { describe, expect, test } from 'vitest';
import { domainXml, useDaemon } from './fixture.ts';
import type { HarnessKind } from './harness.ts';

/** Calls, errors, concurrency, closing. */
export function testCalls(kind: HarnessKind): void {
  describe('calls', () => {
    const daemon = useDaemon(kind);

    test('tells versions, type, URI and host', async () => {
      const connection = await daemon.connect();
      expect(await connection.getType()).toBe('QEMU');
      expect(await connection.getUri()).toBe(connection.uri);
      expect(await connection.getLibVersion()).toBeGreaterThanOrEqual(9_000_000n);
      expect(await connection.getVersion()).toBeGreaterThanOrEqual(5_000_000n);
      expect(await connection.getHostname()).not.toBe('');
      const node = await connection.getNodeInfo();
      expect(node.model).toBe('x86_64');
      expect(node.cpus).toBeGreaterThan(0);
      expect(node.memory).toBeGreaterThan(0n);
      expect(await connection.getCapabilities()).toContain('<capabilities>');
      expect(await connection.getDomainCapabilities({ virtType: 'qemu' })).toContain('<domainCapabilities>');
    });

    test('gives an error with code, domain, level and text of the daemon', async () => {
      const connection = await daemon.connect();
      const error = await connection.lookupDomainByName('ghost').catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(LibvirtError);
      expect(error).toMatchObject({
        kind: 'Daemon',
        code: ErrorNumber.NO_DOMAIN,
        domain: ErrorDomain.QEMU,
        level: 2,
        message: "Domain not found: no domain with matching name 'ghost'",
        str2: "no domain with matching name 'ghost'",
        procedure: 'DOMAIN_LOOKUP_BY_NAME',
      });
      expect((error as LibvirtError).goText()).toBe(
        "virError(Code=42, Domain=10, Message='Domain not found: no domain with matching name 'ghost'')",
      );
    });

    test.each<[string, string, number, RegExp]>([
      ['broken XML', '<domain', ErrorNumber.XML_DETAIL, /^\(domain_definition\):1: /],
      [
        'XML without an os type',
        '<domain type="qemu"><name>x</name></domain>',
        ErrorNumber.XML_ERROR,
        /os <type> must be/,
      ],
    ])('refuses to define %s', async (_title, xml, code, text) => {
      const connection = await daemon.connect();
      const error = await connection.defineDomainXml(xml).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ kind: 'Daemon', code });
      expect((error as LibvirtError).message).toMatch(text);
    });

    test('refuses what cannot be encoded, with the field, and sends nothing', async () => {
      const connection = await daemon.connect();
      const error = await connection
        .call('DOMAIN_LOOKUP_BY_UUID', { uuid: 'nonsense' })
        .catch((caught: unknown) => caught);
      expect(error).toMatchObject({ kind: 'InvalidArgument', procedure: 'DOMAIN_LOOKUP_BY_UUID' });
      expect((error as LibvirtError).message).toBe("DOMAIN_LOOKUP_BY_UUID: uuid: 'nonsense' is no uuid");
      const tooLong = await connection.lookupDomainByName('x'.repeat(4_194_305)).catch((caught: unknown) => caught);
      expect((tooLong as LibvirtError).message).toContain('text of 4194305 bytes, limit 4194304');
      expect(await connection.getType()).toBe('QEMU');
    });

    test('answers 200 calls made at once, each with its own answer', async () => {
      const connection = await daemon.connect();
      const names = Array.from({ length: 200 }, (_, i) => `ghost-${String(i)}`);
      const answers = await Promise.all(
        names.map((name) =>
          connection.lookupDomainByName(name).catch((error: unknown) => (error as LibvirtError).message),
        ),
      );
      expect(answers).toEqual(names.map((name) => `Domain not found: no domain with matching name '${name}'`));
    });

    test('refuses calls past the queue limit', async () => {
      const connection = await daemon.connect({ maxQueued: 2, maxInFlight: 1 });
      const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => connection.getType()));
      expect(outcomes.filter((one) => one.status === 'fulfilled')).toHaveLength(3);
      const errors = outcomes.filter((one) => one.status === 'rejected').map((one) => one.reason as LibvirtError);
      expect(errors.map((error) => error.kind)).toEqual(['QueueFull', 'QueueFull']);
    });

    test('takes a list of one megabyte and a text with every kind of character', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('text'));
      const text = `ü€𝄞 <&> ${'x'.repeat(1_000_000)}`;
      await domain.setMetadata({ type: 0, text });
      expect(await domain.getMetadata(0)).toBe(text);
    });

    test('gives up a call whose signal is aborted, before and after it is sent', async () => {
      const connection = await daemon.connect();
      const before = connection.getType({ signal: AbortSignal.abort(new Error('no more')) });
      await expect(before).rejects.toMatchObject({ kind: 'Aborted', message: 'CONNECT_GET_TYPE aborted: no more' });
      const controller = new AbortController();
      const after = connection.getCapabilities({ signal: controller.signal });
      controller.abort(new Error('no longer'));
      await expect(after).rejects.toMatchObject({
        kind: 'Aborted',
        message: 'CONNECT_GET_CAPABILITIES aborted: no longer',
      });
      // The late reply is dropped and its slot is free again.
      expect(await connection.getType()).toBe('QEMU');
    });

    test('says that it is closed after closing, and closes twice', async () => {
      const connection = await daemon.connect();
      await connection.close();
      await connection.close();
      expect(connection.state).toBe('closed');
      await expect(connection.getType()).rejects.toMatchObject({
        kind: 'Closed',
        code: 1,
        message: 'client socket is closed',
      });
    });

    test('refuses calls that pass descriptors as a daemon without the feature does', async () => {
      const connection = await daemon.connect();
      const dom = { name: 'x', uuid: '00000000-0000-0000-0000-000000000000', id: -1 };
      const call = connection.domain(dom).fdAssociate('iommu', [0]);
      await expect(call).rejects.toMatchObject({ kind: 'Unsupported', code: ErrorNumber.NO_SUPPORT });
    });

    test('connects by the path of the socket, or by a URI that holds it', async () => {
      const { uri = '', socketPath = '' } = daemon.harness.connectOptions;
      const withSocket = uri.replace(':///', '+unix:///') + `?socket=${socketPath}`;
      await using byUri = await connect(withSocket);
      expect(await byUri.getUri()).toBe(uri);
      if (uri !== 'qemu:///system') return;
      await using byPath = await connect(socketPath);
      expect(await byPath.getUri()).toBe(uri);
    });

    test('makes second connections like the first', async () => {
      const connection = await daemon.connect();
      await using second = await connection.duplicate();
      expect(await second.getUri()).toBe(connection.uri);
    });
  });
}
