import { createLogger } from '@virtwire/telemetry';
import { parseDomainXml, parseVmiJson } from '@virtwire/vm-model';
import type { DomainHostDevice } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { pciHostDevice } from '../converter/host-device-pools.ts';
import { createHostDevicePlug } from './hotplug-host-devices.ts';
import { createMutex } from './mutex.ts';

const DOMAIN = { name: 'ns1_vm', uuid: '', id: 1 };
const vmi = parseVmiJson('{"metadata":{"name":"vm","namespace":"ns1","uid":"u"},"spec":{"domain":{"devices":{}}}}');
const aliases = (xml: string): string => /<alias name="([^"]*)"/.exec(xml)?.[1] ?? '';
const device = (name: string, slot: number): DomainHostDevice =>
  pciHostDevice(name, `sriov-${name}`, `0000:81:0${String(slot)}.0`);

function createRig(attach: (xml: string) => Promise<void>) {
  const attached: string[] = [];
  const texts: string[] = [];
  const write = (line: string): void => void texts.push((JSON.parse(line) as { readonly msg: string }).msg);
  const log = createLogger('virt-launcher', { destination: { write } });
  let rounds = 0;
  const mutex = createMutex();
  const plug = createHostDevicePlug({
    libvirt: {
      lookupDomainByName: () => Promise.resolve(DOMAIN),
      getXml: () =>
        Promise.resolve(
          '<domain><devices><hostdev type="pci"><source/><alias name="ua-sriov-old"/></hostdev></devices></domain>',
        ),
      async attachDevice(_domain, xml) {
        attached.push(aliases(xml));
        await attach(xml);
      },
    },
    mutex,
    parseSpec: parseDomainXml,
    wantedDevices: () => Promise.resolve([device('old', 1), device('a', 2), device('b', 3)]),
    onPlugged: () => rounds++,
  });
  /** The lock is free again when a round is over. */
  const settle = (): Promise<void> => mutex.run(() => Promise.resolve());
  return { plug, attached, texts, log, settle, rounds: () => rounds };
}

test('plugs in what is missing, each with its own try', async () => {
  const { plug, attached, texts, log, settle, rounds } = createRig((xml) =>
    xml.includes('sriov-a') ? Promise.reject(new Error('no IOMMU')) : Promise.resolve(),
  );
  plug.start(vmi, log);
  await settle();
  expect(attached).toEqual(['ua-sriov-a', 'ua-sriov-b']);
  expect(texts[0]).toBe('host-devices created: [0000:81:02.0, 0000:81:03.0]');
  expect(texts.at(-1)).toMatch(
    /^failed to hot-plug host-devices: failed to attach host-device <hostdev .*, err: no IOMMU\n$/,
  );
  expect(rounds()).toBe(0);
});

test('refuses a second round while one runs, and takes one afterwards', async () => {
  const gate = Promise.withResolvers<undefined>();
  const { plug, attached, log, settle, rounds } = createRig(() => gate.promise);
  plug.start(vmi, log);
  expect(() => plug.start(vmi, log)).toThrow('hot-plug host-devices is in progress');
  gate.resolve(undefined);
  await settle();
  expect(rounds()).toBe(1);
  plug.start(vmi, log);
  await settle();
  expect(attached.length).toBe(4);
});
