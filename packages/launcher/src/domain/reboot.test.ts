import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createFakeClock } from '../testing/fake-clock.ts';
import { LibvirtCallError } from './libvirt-port.ts';
import { softRebootVm } from './reboot.ts';

const DOMAIN = { name: 'ns1_vm', uuid: '', id: 1 };
const vmi = parseVmiJson(
  JSON.stringify({
    metadata: { name: 'vm', namespace: 'ns1', uid: 'u' },
    spec: { domain: { devices: {} } },
    status: { conditions: [{ type: 'AgentConnected', status: 'True' }] },
  }),
);

function createRig(reboot: Promise<void>) {
  const clock = createFakeClock(0);
  const texts: string[] = [];
  const write = (line: string): void => void texts.push((JSON.parse(line) as { readonly msg: string }).msg);
  const libvirt = {
    lookupDomainByName: () => Promise.resolve(DOMAIN),
    reset: () => Promise.resolve(),
    reboot: () => reboot,
  };
  const log = createLogger('virt-launcher', { destination: { write } });
  return { clock, texts, soft: () => softRebootVm({ libvirt, clock }, vmi, log) };
}

test('an agent that does not obey is waited for no longer than a handler waits for the answer', async () => {
  const never = Promise.withResolvers<undefined>();
  const { clock, texts, soft } = createRig(never.promise);
  await clock.until(soft());
  expect(clock.now()).toBe(15_000);
  expect(texts).toEqual(['The guest was asked to reboot and has not done so yet']);
  never.reject(new Error('the guest is gone'));
  await clock.settle();
  expect(texts.at(-1)).toBe('The guest did not reboot');
});

test('an agent that goes silent over its reboot has obeyed; another failure is told', async () => {
  const silent = createRig(Promise.reject(new LibvirtCallError(86, 10, 'QEMU guest agent is not connected')));
  await silent.clock.until(silent.soft());
  expect(silent.clock.now()).toBe(0);
  const failing = createRig(Promise.reject(new LibvirtCallError(55, 10, 'domain is not running')));
  await expect(failing.clock.until(failing.soft())).rejects.toThrow('domain is not running');
});
