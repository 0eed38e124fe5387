import { describe, expect, test } from 'vitest';
import { renderJson } from '../json/lossless.ts';
import { parseDomainJson } from './json-reader.ts';
import { renderDomainJson } from './json-writer.ts';
import { parseDomainXml } from './xml-reader.ts';
import { emptyDomain } from './zero.ts';

type Json = Readonly<Record<string, unknown>>;

/** What a launcher sends for the XML of a live domain: XML read, JSON printed. */
function sent(xml: string): Json {
  const domain = emptyDomain();
  domain.Spec = parseDomainXml(xml);
  return (JSON.parse(renderDomainJson(domain)) as { Spec: Json }).Spec;
}

/** The value at a place such as `Devices.Disks.0.Source`. */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce((found: unknown, key) => (found as Json | undefined)?.[key], value);
}

const inDevices = (xml: string): string => `<domain><devices>${xml}</devices></domain>`;
const EMPTY_SOURCE = { File: '', StartupPolicy: '', Protocol: '', Name: '', Dev: '' };

describe('what a straight reading of the XML misses', () => {
  test.each<[trap: string, xml: string, path: string, expected: unknown]>([
    ['the qemu namespace is read as none', '<domain xmlns:qemu="http://libvirt.org/x"></domain>', 'XmlNS', ''],
    [
      'a qemu command line is dropped',
      '<domain xmlns:qemu="q"><qemu:commandline><qemu:arg value="-S"/></qemu:commandline></domain>',
      'QEMUCmd',
      null,
    ],
    ['the number of current processors is dropped', '<domain><vcpu current="1">4</vcpu></domain>', 'VCPU.CPUs', 4],
    [
      "accessmode of libvirt is not the tag's accessMode",
      inDevices('<filesystem type="mount" accessmode="passthrough"><target dir="a"/></filesystem>'),
      'Devices.Filesystems.0.AccessMode',
      '',
    ],
    [
      'the network of a graphics listener is looked for under a misspelt name',
      inDevices('<graphics type="vnc"><listen type="network" network="default"/></graphics>'),
      'Devices.Graphics.0.Listen.Network',
      '',
    ],
    [
      'a drive without medium has a source, of empty texts',
      inDevices('<disk type="file" device="cdrom"><source/><target dev="sda"/></disk>'),
      'Devices.Disks.0.Source',
      expect.objectContaining(EMPTY_SOURCE),
    ],
    [
      'a disk without source has an empty one, too',
      inDevices('<disk type="file" device="cdrom"><target dev="sda"/></disk>'),
      'Devices.Disks.0.Source',
      expect.objectContaining(EMPTY_SOURCE),
    ],
    [
      'a second level of backing stores is dropped',
      inDevices(
        '<disk><backingStore type="file"><source file="a"/><backingStore type="file"><source file="b"/></backingStore>' +
          '</backingStore></disk>',
      ),
      'Devices.Disks.0.BackingStore.Source.File',
      'a',
    ],
    ['a marker that is there is an object', inDevices('<disk><readonly/></disk>'), 'Devices.Disks.0.ReadOnly', {}],
    ['a marker that is not is null', inDevices('<disk></disk>'), 'Devices.Disks.0.ReadOnly', null],
    [
      'an alias of the user loses its ua-',
      inDevices('<interface><alias name="ua-default"/></interface>'),
      'Devices.Interfaces.0.Alias',
      { Name: 'default', UserDefined: true },
    ],
    [
      'an alias of libvirt is not of the user',
      inDevices('<interface><alias name="net0"/></interface>'),
      'Devices.Interfaces.0.Alias',
      { Name: 'net0', UserDefined: false },
    ],
    [
      'the index of a controller stays text',
      inDevices('<controller type="usb" index="0"/>'),
      'Devices.Controllers.0.Index',
      '0',
    ],
    [
      'an MTU stays text',
      inDevices('<interface><mtu size="1450"/></interface>'),
      'Devices.Interfaces.0.MTU.Size',
      '1450',
    ],
    [
      'parts of a PCI address stay text',
      inDevices('<interface><address type="pci" domain="0x0000" bus="0x01"/></interface>'),
      'Devices.Interfaces.0.Address.Bus',
      '0x01',
    ],
    ['the domain is named by its element', '<domain></domain>', 'XMLName', { Space: '', Local: 'domain' }],
    [
      'so is an interface',
      inDevices('<interface></interface>'),
      'Devices.Interfaces.0.XMLName',
      { Space: '', Local: 'interface' },
    ],
    [
      'so is a host device',
      inDevices('<hostdev></hostdev>'),
      'Devices.HostDevices.0.XMLName',
      { Space: '', Local: 'hostdev' },
    ],
    [
      'so is an IOMMU',
      inDevices('<iommu model="smmuv3"></iommu>'),
      'Devices.IOMMU.0.XMLName',
      { Space: '', Local: 'iommu' },
    ],
    [
      'a cell without memory says so, which is not the same as null',
      '<domain><cpu><numa><cell id="2" memory="0" unit="KiB"/></numa></cpu></domain>',
      'CPU.NUMA.Cells.0.Memory',
      0,
    ],
    [
      'a cell that says nothing of memory has null',
      '<domain><cpu><numa><cell id="2"/></numa></cpu></domain>',
      'CPU.NUMA.Cells.0.Memory',
      null,
    ],
  ])('%s', (_trap, xml, path, expected) => {
    expect(at(sent(xml), path)).toEqual(expected);
  });
});

describe('what another release printed', () => {
  test.each<[what: string, json: Json, path: string, expected: unknown]>([
    [
      'creationTimestamp null, up to v1.7',
      { ObjectMeta: { name: 'a', creationTimestamp: null } },
      'ObjectMeta',
      { name: 'a' },
    ],
    ['BootMenu.Enabled true, before v1.0.1', { Spec: { OS: { BootMenu: { Enabled: true } } } }, 'Spec.OS.BootMenu', {}],
    ['Watchdog, before v1.1', { Spec: { Devices: { Watchdog: { Model: 'a' } } } }, 'Spec.Devices.Watchdogs', undefined],
    [
      'OS.ACPI.Table as an object, v1.2 to v1.5',
      { Spec: { OS: { ACPI: { Table: { Path: '/a', Type: 'slic' } } } } },
      'Spec.OS.ACPI.Table',
      [{ Path: '/a', Type: 'slic' }],
    ],
    [
      'MigrationMetadata.Completed, before v1.6',
      { Spec: { Metadata: { KubeVirt: { Migration: { Completed: true } } } } },
      'Spec.Metadata.KubeVirt.Migration.Completed',
      true,
    ],
    [
      'Disk.ExpandDisksEnabled, before v1.9',
      { Spec: { Devices: { Disks: [{ ExpandDisksEnabled: true }] } } },
      'Spec.Devices.Disks',
      [{}],
    ],
    ['a state that only handlers make', { Status: { Status: 'Unknown' } }, 'Status.Status', 'Unknown'],
    [
      'numbers beyond 2^53 of a panic',
      { Status: { GuestPanicInfo: { Arg1: 18446744073709551615n } } },
      'Status.GuestPanicInfo.Arg1',
      18446744073709551615n,
    ],
  ])('%s is read', (_what, json, path, expected) => {
    expect(at(parseDomainJson(renderJson(json)), path)).toEqual(expected);
  });

  test.each([
    ['a number for text', '{"Spec":{"Devices":{"Controllers":[{"Index":0}]}}}', 'number'],
    ['text for a number', '{"Status":{"PanicCount":"1"}}', 'string'],
    ['an object for a list', '{"Spec":{"Devices":{"Disks":{}}}}', 'object'],
    ['a list for an object', '{"Spec":{"Devices":{"Rng":[]}}}', 'array'],
  ])('%s refuses the whole document', (_what, json, kind) => {
    expect(() => parseDomainJson(json)).toThrow(`json: cannot unmarshal ${kind}`);
  });
});
