import { expect, test } from 'vitest';
import type { DomainRef } from '../domain/libvirt-port.ts';
import { LIBVIRT_ERROR, LibvirtCallError } from '../domain/libvirt-port.ts';
import { DOMAIN_STATE } from '../domain/state.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { hasLeft } from './lost-result.ts';

const REF = { name: 'default_vm1' } as DomainRef;
const MIGRATED = 4;
const SHUT_DOWN = 1;
const LOST = new LibvirtCallError(38, 7, 'not connected', { isUnanswered: true });
const NO_DOMAIN = new LibvirtCallError(LIBVIRT_ERROR.noDomain, 10, 'Domain not found');
const NO_MEMORY = new LibvirtCallError(2, 0, 'out of memory');

/** Asks a libvirt that gives one answer after the other, the last one for ever. */
async function ask(...answers: readonly (LibvirtCallError | readonly [state: number, reason: number])[]) {
  const clock = createFakeClock(0);
  let looks = 0;
  const getState = (): Promise<{ state: number; reason: number }> => {
    const answer = answers[Math.min(looks++, answers.length - 1)] ?? LOST;
    if (answer instanceof LibvirtCallError) return Promise.reject(answer);
    return Promise.resolve({ state: answer[0], reason: answer[1] });
  };
  const libvirt = { lookupDomainByName: () => Promise.resolve(REF), getState };
  const asking = hasLeft({ libvirt, clock }, 'default_vm1');
  await clock.until(asking);
  return { hasLeft: await asking, looks, atMs: clock.now() };
}

test.each<[string, boolean, readonly [number, number]]>([
  ['that is off since it went to another node has left', true, [DOMAIN_STATE.shutoff, MIGRATED]],
  ['that powered off has not left', false, [DOMAIN_STATE.shutoff, SHUT_DOWN]],
  ['that runs here has not left', false, [DOMAIN_STATE.running, MIGRATED]],
])('a guest %s', async (_title, expected, answer) => {
  expect(await ask(answer)).toMatchObject({ hasLeft: expected, looks: 1 });
});

test('a guest is asked for again until libvirt is back', async () => {
  expect(await ask(LOST, LOST, [DOMAIN_STATE.shutoff, MIGRATED])).toEqual({ hasLeft: true, looks: 3, atMs: 1_000 });
});

test('a libvirt that stays away is not waited for without an end', async () => {
  expect(await ask(LOST)).toMatchObject({ hasLeft: false, atMs: 60_000 });
});

test.each([
  ['does not know the domain', NO_DOMAIN],
  ['fails', NO_MEMORY],
])('a guest of which libvirt %s has not left', async (_title, failure) => {
  expect(await ask(failure)).toMatchObject({ hasLeft: false, looks: 1, atMs: 0 });
});
