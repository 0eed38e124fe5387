import { createLogger } from '@virtwire/telemetry';
import { emptyDomain, emptyDomainSpec } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { createMetadataCache } from '../metadata/cache.ts';
import { createFakeClock } from '../testing/fake-clock.ts';
import type { NotifyFailure } from './notify-port.ts';
import { createEventProcessor } from './processor.ts';

const NO_DOMAIN = 42;

test('FM-11.5 a handler that is away is told of once, and once when it is back', async () => {
  const messages: string[] = [];
  const write = (line: string): void => void messages.push((JSON.parse(line) as { msg: string }).msg);
  const away: NotifyFailure = { isRefused: false, error: new Error('no pipe') };
  const refused: NotifyFailure = { isRefused: true, error: new Error('no such VM') };
  const outcomes = [undefined, away, away, away, undefined, undefined, away, refused, refused];
  const none = (): Promise<never> => Promise.reject(new LibvirtCallError(NO_DOMAIN, 10, 'no domain'));
  const processor = createEventProcessor(
    {
      libvirt: { lookupDomainByName: none, getState: none, getXml: none, getDiskErrors: none },
      notify: {
        sendDomainEvent: () => Promise.resolve(outcomes.shift()),
        sendK8sEvent: () => Promise.resolve(undefined),
      },
      metadata: createMetadataCache(),
      clock: createFakeClock(0),
      log: createLogger('virt-launcher', { destination: { write } }),
      parseSpec: emptyDomainSpec,
      renderDomain: () => '{}',
      settleWork: () => Promise.resolve(),
      completeBackup: () => Promise.resolve(),
      startTargetMonitor: () => undefined,
    },
    { namespace: 'ns', name: 'vm', uid: 'u' },
    '/nonexistent',
  );
  while (outcomes.length > 0) await processor.process(emptyDomain(), 'ns_vm', undefined, {});
  const failed = 'Could not send domain notify event.';
  const back = 'Domain notify events get through again.';
  expect(messages.filter((msg) => msg === failed || msg === back)).toEqual([
    failed,
    back,
    failed,
    failed,
    back,
    failed,
  ]);
});
