import { expect, test } from 'vitest';
import type { ParamValue } from '../domain/libvirt-port.ts';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { createGuestInfoQuestion } from './guest-info-question.ts';
import { GUEST_INFO } from './parse-guest-info.ts';

const ANSWERS: Readonly<Record<number, readonly (readonly [string, ParamValue])[]>> = {
  [GUEST_INFO.os]: [['os.id', 'fedora']],
  [GUEST_INFO.timezone]: [['timezone.name', 'UTC']],
  [GUEST_INFO.hostname]: [['hostname', 'guest']],
  [GUEST_INFO.interfaces]: [['if.count', 1] as const, ['if.0.name', 'eth0'] as const],
};
const ALL = GUEST_INFO.os | GUEST_INFO.timezone | GUEST_INFO.hostname | GUEST_INFO.interfaces;

/** A libvirt whose agent refuses some kinds, which makes the whole call fail. */
function start(refused: number, code = 1) {
  const asked: number[] = [];
  const agent = { refused };
  const question = createGuestInfoQuestion(
    {
      lookupDomainByName: (name) => Promise.resolve({ name, uuid: '1', id: 1 }),
      guestInfo(_domain, types) {
        asked.push(types);
        if ((types & agent.refused) !== 0) {
          return Promise.reject(new LibvirtCallError(code, 10, 'Command guest-get-osinfo has been disabled'));
        }
        const kinds = Object.entries(ANSWERS).filter(([kind]) => (types & Number(kind)) !== 0);
        return Promise.resolve(new Map(kinds.flatMap(([, params]) => params)));
      },
    },
    ALL,
  );
  return { asked, agent, question };
}

test('an agent that knows everything is asked once', async () => {
  const { asked, question } = start(0);
  expect(await question.ask('ns_vm')).toMatchObject({ os: { Id: 'fedora' }, hostname: 'guest' });
  expect(asked).toEqual([ALL]);
});

test('an old agent that lacks a command still tells the rest, and is not asked for it again', async () => {
  const { asked, question } = start(GUEST_INFO.os);
  const facts = await question.ask('ns_vm');
  expect(facts).toMatchObject({ hostname: 'guest', interfaces: [{ InterfaceName: 'eth0' }] });
  expect(facts).not.toHaveProperty('os');
  expect(asked).toHaveLength(5);
  await question.ask('ns_vm');
  expect(asked.slice(5)).toEqual([ALL & ~GUEST_INFO.os]);
});

test('an agent that tells nothing fails as libvirt says, and is asked for all again', async () => {
  const { asked, agent, question } = start(ALL);
  await expect(question.ask('ns_vm')).rejects.toThrow('has been disabled');
  agent.refused = 0;
  await question.ask('ns_vm');
  expect(asked.at(-1)).toBe(ALL);
});

test('an agent that is away is not asked for each kind', async () => {
  const { asked, question } = start(ALL, 86);
  await expect(question.ask('ns_vm')).rejects.toThrow();
  expect(asked).toEqual([ALL]);
});
