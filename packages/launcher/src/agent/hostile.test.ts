import fc from 'fast-check';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { createDomainWriter } from '../domain/wire-domain.ts';
import { newDomain, withAgentFacts } from '../events/domain-document.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { renderFilesystems, renderGuestInfo, renderUsers } from './guest-info-json.ts';
import {
  MAX_ENTRIES,
  MAX_REPLY_CHARS,
  parseFsFreezeReply,
  parseFsInfoReply,
  parseGuestInfoReply,
} from './parse-reply.ts';
import { parseGuestInfoParams } from './parse-guest-info.ts';
import { createAgentPoller } from './poller.ts';
import { createAgentStore } from './store.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });

test('FM-11.4 no reply of a guest can throw', () => {
  const replies = fc.oneof(
    fc.string(),
    fc.json(),
    fc.jsonValue().map((value) => JSON.stringify({ return: value })),
    fc.jsonValue().map((value) => JSON.stringify({ return: [value] })),
  );
  fc.assert(
    fc.property(replies, (reply) => {
      for (const parse of [parseGuestInfoReply, parseFsInfoReply, parseFsFreezeReply]) {
        const facts = parse(reply) ?? {};
        JSON.parse(renderGuestInfo(facts));
        JSON.parse(renderUsers(facts));
        JSON.parse(renderFilesystems(facts));
      }
    }),
  );
});

test('FM-11.4 lists and replies are bounded', () => {
  const many = Array.from({ length: MAX_ENTRIES + 5 }, (_, i) => ({ name: `fs${i}` }));
  expect(parseFsInfoReply(JSON.stringify({ return: many }))?.filesystems).toHaveLength(MAX_ENTRIES);
  expect(parseFsFreezeReply(`{"return":"${'x'.repeat(MAX_REPLY_CHARS)}"}`)).toBeUndefined();
  const params = new Map([['user.count', 4_000_000_000]]);
  expect(parseGuestInfoParams(params, 1).users?.length).toBe(MAX_ENTRIES);
  expect(parseGuestInfoParams(new Map([['user.count', -5]]), 1).users).toEqual([]);
});

test('FM-11.4 whatever a guest says of itself, its events are small enough to be sent', () => {
  const evil = '\u0001'.repeat(100_000);
  const nics = Array.from({ length: 500 }, (_, i): [string, string | number][] => [
    [`if.${i}.name`, evil],
    [`if.${i}.hwaddr`, evil],
    [`if.${i}.addr.count`, 1],
    [`if.${i}.addr.0.addr`, evil],
  ]);
  const os = ['name', 'kernel-release', 'version', 'pretty-name', 'version-id', 'kernel-version', 'machine', 'id'];
  const params = new Map<string, string | number>([
    ['if.count', nics.length],
    ...nics.flat(),
    ...os.map((key) => [`os.${key}`, evil] as const),
  ]);
  const facts = { ...parseGuestInfoParams(params, 78), ...parseFsFreezeReply(JSON.stringify({ return: evil })) };
  expect(facts.interfaces).toHaveLength(nics.length);
  const domain = newDomain('ns_vm', '1');
  const json = createDomainWriter().render({ ...domain, Status: withAgentFacts(domain.Status, facts) });
  // What grpc-go takes, less the room for the domain itself.
  expect(Buffer.byteLength(json)).toBeLessThan(4 * 1024 * 1024 - 256 * 1024);
});

test.each(['18446744073709551616', '-9223372036854775809', '1e300', '1.5', '"5"'])(
  'FM-11.4 a size of %s, which a handler cannot read, does not get to it',
  (size) => {
    const reply = `{"return":[{"name":"vda1","mountpoint":"/","type":"ext4","used-bytes":${size}}]}`;
    expect(parseFsInfoReply(reply)).toBeUndefined();
    expect(parseFsInfoReply(reply.replace(size, '9223372036854775807'))?.filesystems?.[0]?.usedBytes).toBe(
      2n ** 63n - 1n,
    );
  },
);

test('an agent is not asked without a pause, whatever the flags say', async () => {
  const clock = createFakeClock(0);
  let questions = 0;
  const libvirt = {
    setAgentTimeout: () => Promise.resolve(),
    lookupDomainByName: () => Promise.resolve({ name: 'ns_vm', uuid: '1', id: 1 }),
    agentCommand: () => Promise.resolve(`{"return":"${String(questions++)}"}`),
    guestInfo: () => Promise.resolve((questions++, new Map<string, never>())),
  };
  const none = { sysMs: 0, fileMs: 0, userMs: 0, versionMs: 0, fsfreezeMs: 0 };
  const deps = { libvirt, store: createAgentStore(), clock, log, onUpdate: () => Promise.resolve() };
  const poller = createAgentPoller(deps, 'ns_vm', none);
  poller.start();
  await clock.advance(5_500);
  poller.stop();
  expect(questions).toBe(6 * 6);
});

test('FM-11.4 an agent that never answers holds up nothing but its own question', async () => {
  const clock = createFakeClock(0);
  const asked: string[] = [];
  const store = createAgentStore();
  const poller = createAgentPoller(
    {
      libvirt: {
        setAgentTimeout: () => Promise.resolve(),
        lookupDomainByName: () => Promise.resolve({ name: 'ns_vm', uuid: '1', id: 1 }),
        agentCommand: (_domain, command) => {
          asked.push(command);
          return command.includes('fsinfo')
            ? new Promise<string>(() => undefined)
            : Promise.resolve('{"return":"thawed"}');
        },
        guestInfo: (_domain, types) => {
          asked.push(String(types));
          return types === 1 ? new Promise<never>(() => undefined) : Promise.resolve(new Map());
        },
      },
      store,
      clock,
      log,
      onUpdate: () => Promise.resolve(),
    },
    'ns_vm',
    { sysMs: 120_000, fileMs: 300_000, userMs: 10_000, versionMs: 300_000, fsfreezeMs: 5_000 },
  );
  poller.start();
  await clock.advance(60_000);
  expect(asked.filter((question) => question.includes('fsinfo'))).toHaveLength(1);
  expect(asked.filter((question) => question.includes('fsfreeze')).length).toBe(13);
  expect(store.facts().fsFreezeStatus).toBe('thawed');
  poller.stop();
  const before = asked.length;
  await clock.advance(600_000);
  expect(asked.length).toBe(before);
});
