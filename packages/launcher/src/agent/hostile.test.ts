import fc from 'fast-check';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
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
