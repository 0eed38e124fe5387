import { parseDomainXml, parseVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { systemClock } from '../config/clock.ts';
import { type DomainRef, LibvirtCallError } from '../domain/libvirt-port.ts';
import { createMutex } from '../domain/mutex.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import { finalizeMigration } from './finalize.ts';

const VMI = parseVmiJson('{"metadata":{"namespace":"ns","name":"vm","uid":"u"}}');
const NO_DOMAIN = 42;

test('a target whose domain never came has nothing to finalize, unless a link is to be refreshed', async () => {
  const started: DomainRef[] = [];
  const deps = {
    libvirt: {
      lookupDomainByName: () => Promise.reject(new LibvirtCallError(NO_DOMAIN, 10, 'Domain not found')),
      getXml: () => Promise.reject(new Error('not asked for')),
      updateDevice: () => Promise.reject(new Error('not asked for')),
    },
    parseSpec: () => {
      throw new Error('not asked for');
    },
    guestTime: { start: (domain: DomainRef) => void started.push(domain), stop: () => undefined },
    mutex: createMutex(),
    clock: systemClock,
  };
  await finalizeMigration(deps, VMI, new Map());
  await finalizeMigration(deps, VMI, new Map([['net', { Method: 'other' }]]));
  expect(started).toEqual([]);
  const refresh = finalizeMigration(deps, VMI, new Map([['net', { Method: 'link-refresh' }]]));
  await expect(refresh).rejects.toThrow('Domain not found');
});

const NICS = `<domain><name>ns_vm</name><devices>
<interface type='ethernet'><alias name='ua-net'/><link state='down'/></interface>
<interface type='ethernet'><alias name='ua-lan'/></interface>
<interface type='ethernet'><alias name='ua-other'/></interface></devices></domain>`;

test('a link that is refreshed goes down and comes back as it was, one after the other', async () => {
  const told: string[] = [];
  const clock = createFakeClock(0);
  const deps = {
    libvirt: {
      lookupDomainByName: () => Promise.resolve({ name: 'ns_vm', uuid: 'u', id: 1 }),
      getXml: () => Promise.resolve(NICS),
      updateDevice: (_domain: DomainRef, xml: string, flags: number) => {
        const [, name] = /alias name="ua-(\w+)"/.exec(xml) ?? [];
        const [, state = 'as it was'] = /link state="(\w+)"/.exec(xml) ?? [];
        told.push(`${name ?? ''} ${state} ${flags}`);
        return Promise.resolve();
      },
    },
    parseSpec: parseDomainXml,
    guestTime: { start: () => void told.push('time'), stop: () => undefined },
    mutex: createMutex(),
    clock,
  };
  const refresh = new Map(['net', 'lan'].map((name) => [name, { Method: 'link-refresh' }]));
  const done = finalizeMigration(deps, VMI, refresh);
  await clock.advance(1_000);
  await done;
  expect(told).toEqual(['net down 3', 'net down 3', 'lan down 3', 'lan as it was 3', 'time']);
});
