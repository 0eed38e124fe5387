import { createLogger } from '@virtwire/telemetry';
import { describe, expect, test } from 'vitest';
import type { DomainRef } from '../domain/libvirt-port.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { waitForFinalNotification } from './final-notification.ts';
import { shutDownGracefully } from './node-shutdown.ts';
import { createNudge } from './nudge.ts';
import { monitorQemu } from './qemu-monitor.ts';
import { waitForDomain } from './wait-for-domain.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const never = new AbortController().signal;
const vm: DomainRef = { name: 'ns_vm', uuid: '1', id: 1 };

function waiting(listDomains: () => Promise<readonly DomainRef[]>) {
  const clock = createFakeClock(0);
  const state = { isExitingEarly: false, wasSeen: false, calls: 0, lastError: undefined as string | undefined };
  const deps = {
    clock,
    log,
    listDomains,
    wasSeen: () => state.wasSeen,
    isExitingEarly: () => state.isExitingEarly,
    journal: () => ({ calls: state.calls, lastError: state.lastError }),
    nudge: createNudge(clock),
  };
  return { clock, state, deps };
}

describe('waiting for a domain', () => {
  test('looks every 10 s, and at once when libvirt tells of one', async () => {
    let looks = 0;
    let domains: readonly DomainRef[] = [];
    const { clock, deps } = waiting(() => {
      looks++;
      return Promise.resolve(domains);
    });
    const result = waitForDomain(deps, 60_000, never);
    await clock.advance(25_000);
    expect(looks).toBe(3);
    domains = [vm];
    deps.nudge.nudge();
    await clock.settle();
    expect(await result).toBe(true);
  });

  test('a domain that came and went between two looks was there', async () => {
    const { clock, state, deps } = waiting(() => Promise.resolve([]));
    const result = waitForDomain(deps, 60_000, never);
    await clock.advance(1_000);
    state.wasSeen = true;
    deps.nudge.nudge();
    expect(await clock.until(result)).toBe(true);
    expect(clock.now()).toBe(1_000);
  });

  test('FM-9.4 names what was missing', async () => {
    const { clock, state, deps } = waiting(() => Promise.resolve([]));
    state.calls = 3;
    state.lastError = 'no such disk';
    const result = waitForDomain(deps, 4_000, never);
    const failure = expect(result).rejects.toThrow(
      'timed out waiting for domain to be defined (waited 4s; SyncVirtualMachine arrived 3 times, the last one failed: no such disk)',
    );
    await clock.advance(5_000);
    await failure;
  });

  test('FM-8.3 leaves within 2 s of the early exit signal', async () => {
    const { clock, state, deps } = waiting(() => Promise.resolve([]));
    const result = waitForDomain(deps, 60_000, never);
    const failure = expect(result).rejects.toThrow('received early exit signal');
    await clock.advance(3_000);
    state.isExitingEarly = true;
    await clock.advance(2_000);
    await failure;
  });

  test.each<[string, () => Promise<readonly DomainRef[]>, boolean]>([
    ['without a domain it is not waited for one', () => Promise.resolve([]), false],
    ['a domain that came just then is not left alone', () => Promise.resolve([vm]), true],
    ['a libvirt that does not answer does not keep the pod', () => new Promise(() => undefined), false],
  ])('told to end: %s', async (_title, list, hasDomain) => {
    let answer = (): Promise<readonly DomainRef[]> => Promise.resolve([]);
    const { clock, deps } = waiting(() => answer());
    const stopping = new AbortController();
    const result = waitForDomain(deps, 60_000, stopping.signal);
    await clock.advance(1_000);
    answer = list;
    stopping.abort();
    expect(await clock.until(result)).toBe(hasDomain);
  });

  test('FM-8.3 a libvirt that hangs does not hold up the early exit', async () => {
    const { clock, state, deps } = waiting(() => new Promise(() => undefined));
    const result = waitForDomain(deps, 60_000, never);
    const failure = expect(result).rejects.toThrow('received early exit signal');
    await clock.advance(500);
    state.isExitingEarly = true;
    deps.nudge.nudge();
    await clock.advance(2_000);
    await failure;
  });

  test('a libvirt that does not answer is asked again', async () => {
    let looks = 0;
    const { clock, deps } = waiting(() => (++looks < 3 ? Promise.reject(new Error('gone')) : Promise.resolve([vm])));
    const result = waitForDomain(deps, 60_000, never);
    await clock.advance(21_000);
    expect(await result).toBe(true);
  });
});

describe('FM-2.11 the last notification', () => {
  async function run(isSentAtMs: number | undefined) {
    const clock = createFakeClock(0);
    const kills: number[] = [];
    const sent = Promise.withResolvers<undefined>();
    if (isSentAtMs !== undefined) void clock.sleep(isSentAtMs).then(() => sent.resolve(undefined));
    const kill = (): Promise<void> => {
      kills.push(clock.now());
      return Promise.resolve();
    };
    const done = waitForFinalNotification({ clock, log, isDeleteSent: sent.promise, kill });
    const endedAtMs = await clock.until(done.then(() => clock.now()));
    return { kills, endedAtMs };
  }

  test('ends at once when it has been sent', async () => {
    expect(await run(3_000)).toEqual({ kills: [], endedAtMs: 3_000 });
  });

  test('kills the domain after 15 s', async () => {
    expect(await run(20_000)).toEqual({ kills: [15_000], endedAtMs: 20_000 });
  });

  test('gives up 30 s later', async () => {
    expect(await run(undefined)).toEqual({ kills: [15_000], endedAtMs: 45_000 });
  });
});

describe('FM-9.5 a pod that is told to end', () => {
  async function run(reactsAtMs: number | undefined) {
    const clock = createFakeClock(0);
    const metadata = createMetadataCache();
    const shutdowns: number[] = [];
    const shutdown = (): Promise<void> => {
      shutdowns.push(clock.now());
      return Promise.resolve();
    };
    const done = shutDownGracefully({ clock, log, metadata, shutdown }, never);
    expect(metadata.gracePeriod.load()?.MarkedForGracefulShutdown).toBe(true);
    if (reactsAtMs !== undefined) {
      await clock.advance(reactsAtMs);
      metadata.gracePeriod.update((grace) => ({ ...grace, DeletionTimestamp: '2026-01-01T00:00:00Z' }));
    }
    await clock.until(done);
    return shutdowns;
  }

  test('is left to the handler when it reacts', async () => {
    expect(await run(5_000)).toEqual([]);
  });

  test('powers the guest down itself after 10 s', async () => {
    expect(await run(undefined)).toEqual([10_000]);
  });
});

test('FM-9.2 a QEMU that nobody has collected ends the watch, and process 1 is reminded of it', async () => {
  const clock = createFakeClock(0);
  const states = ['S', 'S', 'Z'];
  let reminders = 0;
  const deps = {
    clock,
    log,
    readPid: () => 42,
    readProcessState: () => states.shift(),
    onShutdownSignal: () => undefined,
    kill: () => Promise.resolve(),
    isExitingEarly: () => false,
    isDomainGone: () => false,
    onZombie: () => void (reminders += 1),
    nudge: createNudge(clock),
  };
  const done = monitorQemu(deps, { domainName: 'ns_vm', startTimeoutMs: 60_000, gracePeriodSeconds: 3 }, never);
  await clock.until(done);
  expect([clock.now(), reminders]).toEqual([2_000, 1]);
});

test('FM-11.5 a QEMU that is long in coming is told of once', async () => {
  const clock = createFakeClock(0);
  const messages: string[] = [];
  const write = (line: string): void => void messages.push((JSON.parse(line) as { msg: string }).msg);
  const pids: number[] = [];
  const deps = {
    clock,
    log: createLogger('virt-launcher', { destination: { write } }),
    readPid: () => pids[0],
    readProcessState: () => undefined,
    onShutdownSignal: () => undefined,
    kill: () => Promise.resolve(),
    isExitingEarly: () => false,
    isDomainGone: () => false,
    onZombie: () => undefined,
    nudge: createNudge(clock),
  };
  const done = monitorQemu(deps, { domainName: 'ns_vm', startTimeoutMs: 60_000, gracePeriodSeconds: 3 }, never);
  await clock.advance(30_000);
  pids.push(42);
  await clock.until(done);
  expect(messages).toEqual([
    'Monitoring loop: rate 1s start timeout 1m0s',
    'Still missing PID for ns_vm, no pid file yet',
    'Found PID for ns_vm: 42',
    'Process ns_vm and pid 42 is gone!',
  ]);
});

test('the watch kills once a second after the grace period, until QEMU is gone', async () => {
  const clock = createFakeClock(0);
  const kills: number[] = [];
  const stopping = new AbortController();
  const deps = {
    clock,
    log,
    readPid: () => 42,
    readProcessState: () => (kills.length < 3 ? 'S' : undefined),
    onShutdownSignal: () => undefined,
    kill: () => Promise.resolve(void kills.push(clock.now())),
    isExitingEarly: () => false,
    isDomainGone: () => false,
    onZombie: () => undefined,
    nudge: createNudge(clock),
  };
  const config = { domainName: 'ns_vm', startTimeoutMs: 60_000, gracePeriodSeconds: 3 };
  const done = monitorQemu(deps, config, stopping.signal);
  await clock.advance(2_000);
  stopping.abort();
  await clock.until(done);
  expect(kills).toEqual([6_000, 7_000, 8_000]);
});
