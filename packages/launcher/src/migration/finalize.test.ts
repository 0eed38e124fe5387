import { parseVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { systemClock } from '../config/clock.ts';
import { type DomainRef, LibvirtCallError } from '../domain/libvirt-port.ts';
import { createMutex } from '../domain/mutex.ts';
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
