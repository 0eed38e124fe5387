import type { XmlElement } from '@virtwire/vm-model';
import { parseXmlTree, renderDomainXml } from '@virtwire/vm-model';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { convertVmi } from '../../converter/convert.ts';
import { resolveConverterContext } from '../../converter/resolve-context.ts';
import { arbitraryConversion } from '../../testing/arbitrary-vmi.ts';
import { readFiles } from '../../testing/bundle.ts';
import { readDomain } from './domain-reader.ts';
import { writeDomain } from './domain-writer.ts';
import { Schema } from './schema.ts';

const schema = new Schema();
const again = (xml: string): string => writeDomain(schema, readDomain(schema, xml));
const inDevices = (xml: string): string => `<domain type="kvm"><devices>${xml}</devices></domain>`;

/** Every element with its way, attributes and text; the order of elements of different names does not matter. */
function contentOf(element: XmlElement, way = ''): string[] {
  const here = `${way}/${element.name}`;
  const attributes = [...element.attributes].map(([name, value]) => `${name}=${value}`).sort();
  const text = element.text.trim();
  return [
    `${here} ${attributes.join(' ')} ${text}`.trim(),
    ...element.children.flatMap((c) => contentOf(c, here)),
  ].sort();
}

const converted = [...readFiles('converter')].filter(
  (entry): entry is [string, string] => entry[0].endsWith('/domain.xml') && typeof entry[1] === 'string',
);

/** What libvirtxml writes in another way, or leaves out because libvirt does not read it. */
const OTHERWISE: readonly RegExp[] = [
  /^\/domain type=\w+ xmlns:qemu=/,
  /^\/domain\/maxMemory slots=0 /,
  /\/(?:disk|interface)\/source$/,
  /\/disk\/(?:capacity|filesystemOverhead) /,
  /\/source (?:dev|file)=\S+ name=\S+$/,
  /\/hostdev (?:display=on )?managed=no type=pci$/,
  /\/address bus=\d+ domain=/,
  /\/hostdev\/source\/address .* type=pci$/,
  /\/filesystem accessMode=passthrough type=mount$/,
  /\/filesystem\/source dir= socket=\S+$/,
  /\/launchSecurity\/policy {2}0x\w+$/,
];

function lostOf(xml: string): string[] {
  const kept = new Set(contentOf(parseXmlTree(again(xml))));
  return contentOf(parseXmlTree(xml)).filter((line) => !kept.has(line) && !OTHERWISE.some((known) => known.test(line)));
}

describe('a domain that is read and written again', () => {
  test('loses nothing of what the converter makes', () => {
    expect(converted.length).toBeGreaterThan(70);
    for (const [name, xml] of converted) {
      // An interface without a type, which libvirt refuses too.
      if (name.startsWith('137-')) continue;
      expect([name, lostOf(xml)]).toEqual([name, []]);
    }
  });

  test('nor of any domain that the converter can make', () => {
    fc.assert(
      fc.property(arbitraryConversion, ({ vmi, circumstances }) => {
        const xml = renderDomainXml(convertVmi(vmi, resolveConverterContext(vmi, circumstances)).Spec);
        expect(lostOf(xml)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    '<disk type="nvme" device="disk"><source type="pci" managed="yes" namespace="1"><address domain="0x0000" bus="0x01" slot="0x00" function="0x0"></address></source></disk>',
    '<disk type="vhostuser" device="disk"><source type="unix" path="/s" mode="client"></source></disk>',
    '<disk type="network" device="disk"><source protocol="rbd" name="p/i"><host name="h" port="1"></host></source></disk>',
    '<disk type="file" device="disk"><source file="/a"></source><backingStore type="block"><format type="raw"></format><source dev="/b"></source></backingStore></disk>',
    '<interface type="vhostuser"><source type="unix" path="/s" mode="client"></source></interface>',
    '<interface type="hostdev"><source><address type="pci" domain="0x0000" bus="0x01" slot="0x02" function="0x3"></address></source></interface>',
    '<interface type="bridge"><source bridge="b"></source><virtualport type="openvswitch"><parameters interfaceid="i"></parameters></virtualport></interface>',
    '<serial type="udp"><source mode="bind" host="a" service="1"></source><source mode="connect" host="b" service="2"></source></serial>',
    '<channel type="spicevmc"><target type="virtio" name="n"></target></channel>',
    '<smartcard mode="passthrough" type="spicevmc"></smartcard>',
    '<smartcard mode="host"></smartcard>',
    '<tpm model="tpm-tis"><backend type="emulator" version="2.0"></backend></tpm>',
    '<rng model="virtio"><backend model="random">/dev/urandom</backend></rng>',
    '<hostdev mode="subsystem" type="usb"><source><vendor id="0x1"></vendor><product id="0x2"></product></source></hostdev>',
    '<hostdev mode="subsystem" type="mdev" model="vfio-pci"><source><address uuid="u"></address></source></hostdev>',
    '<hostdev mode="capabilities" type="misc"><source><char>/dev/x</char></source></hostdev>',
    '<graphics type="vnc" port="-1" autoport="yes"><listen type="address" address="127.0.0.1"></listen></graphics>',
    '<controller type="pci" index="1" model="pcie-root-port"><target chassis="1" port="16" hotplug="off"></target></controller>',
    '<filesystem type="mount"><driver type="virtiofs"></driver><source dir="/d"></source><target dir="t"></target></filesystem>',
    '<input type="evdev"><source dev="/dev/input/event1" grab="all"></source></input>',
    '<audio id="1" type="none"></audio>',
    '<redirdev bus="usb" type="tcp"><source mode="connect" host="h" service="1"></source></redirdev>',
    '<redirfilter><usbdev class="0x08" vendor="0x1234" product="0xbeef" version="2.56" allow="yes"></usbdev></redirfilter>',
    '<iommu model="intel"><driver intremap="on"></driver></iommu>',
  ])('keeps %s', (device) => {
    expect(contentOf(parseXmlTree(again(inDevices(device))))).toEqual(contentOf(parseXmlTree(inDevices(device))));
  });

  test.each([
    '<launchSecurity type="sev"><cbitpos>47</cbitpos><policy>0x0003</policy><session>s</session></launchSecurity>',
    '<sysinfo type="fwcfg"><entry name="opt/x">y</entry></sysinfo>',
    '<os><nvram type="file"><source file="/n"></source></nvram></os>',
    '<qemu:commandline xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0"><qemu:arg value="a"></qemu:arg></qemu:commandline>',
  ])('keeps %s', (part) => {
    const [before = '', after = ''] = [`<domain>${part}</domain>`, again(`<domain>${part}</domain>`)].map((xml) =>
      contentOf(parseXmlTree(xml.replace(/ xmlns:qemu="[^"]*"/, ''))).join('\n'),
    );
    expect(after).toBe(before);
  });

  test.each<[string, string]>([
    ['<other></other>', 'expected element type <domain> but have <other>'],
    ['<domain><vcpu>x</vcpu></domain>', 'reading DomainVCPU.Value: "x" is no number'],
    [inDevices('<interface><source></source></interface>'), 'reading DomainInterface: unknown type ""'],
  ])('%s is refused', (xml, text) => {
    expect(() => again(xml)).toThrow(text);
  });

  test('a host device without a mode is one of a subsystem, as for libvirt', () => {
    const device = '<hostdev type="pci"><source><address bus="0x01"></address></source></hostdev>';
    expect(again(inDevices(device)).replace(/\n */g, '')).toContain(device.replace('type', 'mode="subsystem" type'));
  });

  test('the only IOMMU has a field of its own, which must not contradict the list', () => {
    const iommu = '<iommu model="intel"></iommu>';
    expect(readDomain(schema, inDevices(iommu)).fields.get('Devices')).toMatchObject({
      fields: new Map([
        ['IOMMU', expect.anything()],
        ['IOMMUs', expect.anything()],
      ]) as unknown,
    });
  });
});
