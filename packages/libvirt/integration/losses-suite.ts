import { connect, DomainState } from '../src/index.ts';
import type { Connection, ConnectionEvent } from '../src/index.ts';
import { describe, expect, test } from 'vitest';
import { domainXml, recordLifecycle, useDaemon } from './fixture.ts';
import { eventually } from './harness.ts';
import type { HarnessKind } from './harness.ts';

/** What happens when the daemon is slow, hung, killed, absent, or comes back. */
export function testLosses(kind: HarnessKind): void {
  describe('losses', () => {
    const daemon = useDaemon(kind);

    test('times a call out when the daemon is slow, and goes on when it answers again', async () => {
      const connection = await daemon.connect();
      daemon.harness.pause();
      const error = await connection.getType({ timeoutMs: 200 }).catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        kind: 'Timeout',
        message: 'CONNECT_GET_TYPE timed out after 200 ms: no answer from the daemon',
      });
      const others = Array.from({ length: 3 }, () => connection.getHostname());
      const queued = connection.getUri({ timeoutMs: 200 });
      await expect(queued).rejects.toMatchObject({
        message: 'CONNECT_GET_URI timed out after 200 ms: all slots taken by unanswered calls, not sent',
      });
      daemon.harness.resume();
      expect(await Promise.all(others)).toHaveLength(3);
      expect(await connection.getType()).toBe('QEMU');
    });

    test('notices a hung daemon by its pings', async () => {
      const connection = await daemon.connect({ keepalive: { intervalMs: 50, count: 2 }, reconnect: false });
      daemon.harness.pause();
      await expect(connection.getType()).rejects.toMatchObject({
        kind: 'ConnectionLost',
        code: 1,
        message: 'connection closed due to keepalive timeout',
      });
      expect(connection.state).toBe('closed');
      daemon.harness.resume();
    });

    test('gives up opening a daemon that accepts and does not answer', async () => {
      daemon.harness.pause();
      const opening = connect({ ...daemon.harness.connectOptions, openTimeoutMs: 200 });
      await expect(opening).rejects.toMatchObject({
        kind: 'ConnectFailed',
        message: expect.stringMatching(/did not finish opening .* within 200 ms/) as string,
      });
      daemon.harness.resume();
    });

    test('fails every pending call when the daemon is killed, reconnects, restores the subscriptions, reports the gap', async () => {
      const connection = await daemon.connect({ reconnect: { initialDelayMs: 20, maxDelayMs: 100 } });
      const domain = await connection.defineDomainXml(domainXml('stays'));
      await domain.create();
      const seen = await recordLifecycle(connection);
      const happened = recordConnection(connection);
      daemon.harness.pause();
      const pending = Array.from({ length: 6 }, () => connection.getHostname().catch((error: unknown) => error));
      await daemon.harness.kill();
      for (const error of await Promise.all(pending))
        expect(error).toMatchObject({ kind: 'ConnectionLost', domain: 7 });
      expect(connection.state).toBe('reconnecting');
      await expect(connection.getType()).rejects.toMatchObject({ kind: 'ConnectionLost' });
      daemon.harness.resume();
      await daemon.harness.start();
      await eventually('the reconnection', () => connection.state === 'open');
      expect(happened.map((event) => event.kind)).toEqual(['lost', 'reconnected']);
      expect(happened.at(-1)).toMatchObject({ kind: 'reconnected', gapMs: expect.any(Number) as number });
      expect((await domain.getState()).state).toBe(DomainState.RUNNING);
      await domain.suspend();
      await eventually('the suspended event', () => seen.all.includes('stays 3/0'));
    });

    test('waits for a daemon that is not there yet, for as long as asked', async () => {
      await daemon.harness.kill();
      const { connectOptions } = daemon.harness;
      await expect(connect(connectOptions)).rejects.toMatchObject({
        kind: 'ConnectFailed',
        message: expect.stringContaining('libvirt-sock') as string,
      });
      const waiting = connect({ ...connectOptions, waitForDaemonMs: 60_000 });
      await daemon.harness.start();
      await using connection = await waiting;
      expect(connection.state).toBe('open');
    });

    test('closes while it is reconnecting, without a further event or attempt', async () => {
      const connection = await daemon.connect({ reconnect: { initialDelayMs: 10_000 } });
      const happened = recordConnection(connection);
      await daemon.harness.kill();
      await eventually('the loss', () => connection.state === 'reconnecting');
      await connection.close();
      expect(happened.map((event) => event.kind)).toEqual(['lost', 'closed']);
      await daemon.harness.start();
    });

    test('gives up reconnecting after the time allowed', async () => {
      const connection = await daemon.connect({
        reconnect: { initialDelayMs: 10, maxDelayMs: 20, giveUpAfterMs: 100 },
      });
      const happened = recordConnection(connection);
      await daemon.harness.kill();
      await eventually('the end', () => connection.state === 'closed');
      expect(happened.map((event) => event.kind)).toEqual(['lost', 'closed']);
      await expect(connection.getType()).rejects.toMatchObject({
        kind: 'Closed',
        message: expect.stringMatching(/gave up reconnecting after \d+ ms and \d+ attempts/) as string,
      });
      await daemon.harness.start();
    });
  });
}

function recordConnection(connection: Connection): ConnectionEvent[] {
  const events: ConnectionEvent[] = [];
  connection.onConnectionEvent((event) => events.push(event));
  return events;
}
