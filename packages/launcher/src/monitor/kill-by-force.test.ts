import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { createFakeClock } from '../testing/fake-clock.ts';
import { killByForce } from './kill-by-force.ts';

async function run(
  kill: () => Promise<void>,
  pid: number | undefined,
  terminate: (pid: number) => void = () => undefined,
) {
  const clock = createFakeClock(0);
  const messages: string[] = [];
  const write = (line: string): void => void messages.push((JSON.parse(line) as { msg: string }).msg);
  const log = createLogger('virt-launcher', { destination: { write } });
  const terminated: number[] = [];
  const ending = killByForce(
    {
      clock,
      log,
      kill,
      terminate(at) {
        terminated.push(at);
        terminate(at);
      },
    },
    pid,
  );
  await clock.until(ending);
  return { atMs: clock.now(), terminated, messages };
}

test('libvirt ends the VM', async () => {
  expect(await run(() => Promise.resolve(), 42)).toEqual({ atMs: 0, terminated: [], messages: [] });
});

test.each<[string, () => Promise<void>, number]>([
  ['says no', () => Promise.reject(new Error('no')), 0],
  ['does not answer', () => new Promise(() => undefined), 5_000],
])('QEMU is told itself when libvirt %s', async (_title, kill, atMs) => {
  const messages = ['Unable to stop qemu with libvirt', 'Falling back to SIGTERM'];
  expect(await run(kill, 42)).toEqual({ atMs, terminated: [42], messages });
});

test('a QEMU that is not known is not told', async () => {
  const { terminated } = await run(() => Promise.reject(new Error('no')), undefined);
  expect(terminated).toEqual([]);
});

test('a QEMU that has just ended is no failure', async () => {
  const { messages } = await run(
    () => Promise.reject(new Error('no')),
    42,
    () => {
      throw new Error('kill ESRCH');
    },
  );
  expect(messages.at(-1)).toBe('QEMU is gone already: kill ESRCH');
});
