import { expect, test } from 'vitest';
import { createMutex } from './mutex.ts';

test('runs one after the other, in order, whatever becomes of each', async () => {
  const mutex = createMutex();
  const order: string[] = [];
  const gate = Promise.withResolvers<undefined>();
  const first = mutex.run(async () => {
    await gate.promise;
    order.push('first');
    throw new Error('failed');
  });
  const second = mutex.run(() => Promise.resolve(order.push('second')));
  gate.resolve(undefined);
  await expect(first).rejects.toThrow('failed');
  expect(await second).toBe(2);
  expect(order).toEqual(['first', 'second']);
});

test('refuses whoever comes when too many wait, until there is room again', async () => {
  const mutex = createMutex(2);
  const gate = Promise.withResolvers<undefined>();
  const running = [0, 1, 2].map(() => mutex.run(() => gate.promise));
  await expect(mutex.run(() => Promise.resolve())).rejects.toMatchObject({ code: 'Busy' });
  gate.resolve(undefined);
  await Promise.all(running);
  await expect(mutex.run(() => Promise.resolve('free'))).resolves.toBe('free');
});
