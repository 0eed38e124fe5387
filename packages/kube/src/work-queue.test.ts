import { describe, expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { WorkQueue } from './work-queue.ts';
import type { Work, WorkQueueOptions } from './work-queue.ts';

/** A clock that moves when told. Promises settle between its steps. */
function fakeClock(): Clock & { advance(ms: number): Promise<void>; pending(): number } {
  let now = 0;
  const timers = new Set<{ at: number; action: () => void }>();
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 1_000; i++) await Promise.resolve();
  };
  return {
    nowMs: () => now,
    after: (delayMs, action) => {
      const timer = { at: now + delayMs, action };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    pending: () => timers.size,
    async advance(ms) {
      await settle();
      const end = now + ms;
      for (;;) {
        const next = [...timers].filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        now = next.at;
        timers.delete(next);
        next.action();
        await settle();
      }
      now = end;
      await settle();
    },
  };
}

/** Work that only writes down what it was given. */
function note<T>(list: T[], value: T): undefined {
  list.push(value);
}

/** A queue on a fake clock, its workers running. */
function start(work: Work, options: WorkQueueOptions & { workers?: number } = {}) {
  const clock = fakeClock();
  const queue = new WorkQueue({ clock, random: () => 0, ...options });
  const stop = new AbortController();
  const done = queue.run(work, { workers: options.workers ?? 4, signal: stop.signal });
  return { clock, queue, stop, done };
}

/** Work that ends when told, and counts. */
function gatedWork() {
  const running = new Map<string, () => void>();
  const started: string[] = [];
  const work: Work = (key) =>
    new Promise<void>((resolve) => {
      started.push(key);
      running.set(key, () => {
        running.delete(key);
        resolve();
      });
    });
  return { work, started, running, finish: (key: string) => running.get(key)?.() };
}

describe('a work queue', () => {
  test('merges a key that is added again before its turn', async () => {
    const seen: string[] = [];
    const clock = fakeClock();
    const queue = new WorkQueue({ clock });
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
    expect(queue.length).toBe(2);
    const stop = new AbortController();
    const done = queue.run(async (key) => note(seen, key), { workers: 2, signal: stop.signal });
    await clock.advance(0);
    expect(seen).toEqual(['a', 'b']);
    stop.abort();
    await done;
  });

  test('works on a key once at a time, and once more when it was added meanwhile', async () => {
    const gate = gatedWork();
    const { clock, queue } = start(gate.work);
    queue.add('a');
    await clock.advance(0);
    queue.add('a');
    queue.add('a');
    queue.add('b');
    await clock.advance(0);
    expect(gate.started).toEqual(['a', 'b']);
    gate.finish('a');
    await clock.advance(0);
    expect(gate.started).toEqual(['a', 'b', 'a']);
    gate.finish('a');
    await clock.advance(10_000);
    expect(gate.started).toEqual(['a', 'b', 'a']);
  });

  test('does as many keys at once as it has workers', async () => {
    const gate = gatedWork();
    const { clock, queue } = start(gate.work, { workers: 3 });
    for (let i = 0; i < 10; i++) queue.add(`k${i}`);
    await clock.advance(0);
    expect(gate.running.size).toBe(3);
    gate.finish('k0');
    await clock.advance(0);
    expect(gate.started).toEqual(['k0', 'k1', 'k2', 'k3']);
  });

  test('keeps the earlier of two delays, and an immediate add beats both', async () => {
    const seen: number[] = [];
    const clock = fakeClock();
    const queue = new WorkQueue({ clock });
    void queue.run(async () => note(seen, clock.nowMs()), { workers: 1, signal: new AbortController().signal });
    queue.addAfter('a', 500);
    queue.addAfter('a', 100);
    queue.addAfter('a', 900);
    await clock.advance(1_000);
    expect(seen).toEqual([100]);
    queue.addAfter('a', 500);
    queue.add('a');
    await clock.advance(1_000);
    expect(seen).toEqual([100, 1_000]);
    expect(clock.pending()).toBe(0);
  });

  test('asks again after the time that the work names', async () => {
    const seen: number[] = [];
    const clock = fakeClock();
    const queue = new WorkQueue({ clock });
    const work: Work = async () => {
      seen.push(clock.nowMs());
      return seen.length < 3 ? { requeueAfterMs: 1_000 } : undefined;
    };
    void queue.run(work, { workers: 1, signal: new AbortController().signal });
    queue.add('a');
    await clock.advance(60_000);
    expect(seen).toEqual([0, 1_000, 2_000]);
  });

  test('backs a failing key off by 5 ms × 2^n up to 1000 s and forgets after a success', async () => {
    const at: number[] = [];
    const failures: number[] = [];
    let healthy = false;
    const clock = fakeClock();
    const queue = new WorkQueue({ clock, random: () => 0, onFailure: (_key, _error, n) => failures.push(n) });
    const work: Work = async () => {
      at.push(clock.nowMs());
      if (!healthy) throw new Error('no');
    };
    void queue.run(work, { workers: 1, signal: new AbortController().signal });
    queue.add('a');
    await clock.advance(6_000_000);
    const gaps = at.slice(1).map((t, i) => t - (at[i] ?? 0));
    expect(gaps.slice(0, 5)).toEqual([5, 10, 20, 40, 80]);
    expect(Math.max(...gaps)).toBe(1_000_000);
    expect(failures.slice(0, 3)).toEqual([1, 2, 3]);
    healthy = true;
    await clock.advance(1_000_000);
    expect(queue.failures('a')).toBe(0);
  });

  test('adds jitter to the back-off, never beyond the limit', async () => {
    const at: number[] = [];
    const clock = fakeClock();
    const queue = new WorkQueue({ clock, random: () => 0.5, limits: { jitter: 0.2, maxDelayMs: 8 } });
    const work: Work = async () => {
      at.push(clock.nowMs());
      throw new Error('no');
    };
    void queue.run(work, { workers: 1, signal: new AbortController().signal });
    queue.add('a');
    await clock.advance(14);
    expect(at).toEqual([0, 5.5, 13.5]);
  });

  test('lets 100 keys fail at once, then 10 a second', async () => {
    const retries: number[] = [];
    const clock = fakeClock();
    const queue = new WorkQueue({ clock, random: () => 0 });
    const failed = new Set<string>();
    const work: Work = async (key) => {
      if (failed.has(key)) return note(retries, clock.nowMs());
      failed.add(key);
      throw new Error('first time');
    };
    void queue.run(work, { workers: 1, signal: new AbortController().signal });
    for (let i = 0; i < 120; i++) queue.add(`k${i}`);
    await clock.advance(60_000);
    expect(retries).toHaveLength(120);
    expect(retries.filter((t) => t <= 5)).toHaveLength(100);
    expect(Math.max(...retries)).toBeCloseTo(2_000, 3);
  });

  test('refuses new keys when it is full, and says so', () => {
    const refused: string[] = [];
    const queue = new WorkQueue({ clock: fakeClock(), maxKeys: 2, onRefused: (key) => refused.push(key) });
    expect([queue.add('a'), queue.addAfter('b', 1_000), queue.add('c'), queue.add('a')]).toEqual([
      true,
      true,
      false,
      true,
    ]);
    expect(refused).toEqual(['c']);
    expect(queue.known).toBe(2);
  });

  test('ends with its signal, and the work in hand is told', async () => {
    let told = false;
    const { clock, queue, stop, done } = start(
      (_key, signal) =>
        new Promise<void>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            told = true;
            reject(new Error('stopped'));
          });
        }),
    );
    queue.add('a');
    await clock.advance(0);
    stop.abort();
    await done;
    expect(told).toBe(true);
    expect(queue.failures('a')).toBe(0);
  });

  test('drains what is ready and in work, drops what is delayed, and takes no more', async () => {
    const gate = gatedWork();
    const { clock, queue, done } = start(gate.work, { workers: 1 });
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 10);
    await clock.advance(0);
    const down = queue.shutDown({ drain: new AbortController().signal });
    expect(queue.add('d')).toBe(false);
    gate.finish('a');
    await clock.advance(0);
    gate.finish('b');
    await down;
    await done;
    expect(gate.started).toEqual(['a', 'b']);
    expect(clock.pending()).toBe(0);
  });

  test('stops draining when its limit is over', async () => {
    const gate = gatedWork();
    const { clock, queue, done } = start(gate.work, { workers: 1 });
    queue.add('a');
    await clock.advance(0);
    const limit = new AbortController();
    const down = queue.shutDown({ drain: limit.signal });
    limit.abort();
    await down;
    gate.finish('a');
    await done;
    expect(gate.running.size).toBe(0);
  });

  test('leaves nothing behind after 10,000 keys', async () => {
    const { clock, queue } = start(async (key) => {
      if (key.endsWith('7') && queue.failures(key) === 0) throw new Error('once');
    });
    for (let i = 0; i < 10_000; i++) queue.add(`k${i}`);
    await clock.advance(10_000_000);
    expect(queue.known).toBe(0);
    expect(clock.pending()).toBe(0);
  });
});
