import {
  emptyDomainSpec,
  parseDomainXml,
  parseVmiJson,
  parseXmlTree,
  renderXmlTree,
  xmlChild,
} from '@virtwire/vm-model';
import type { Vmi, XmlElement } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { DEFAULT_DOMAIN_PATHS } from '../converter/circumstances.ts';
import { readCases } from '../testing/bundle.ts';
import type { VectorInput } from '../testing/vector-types.ts';
import { adaptIncoming } from './hook-edits.ts';
import type { IncomingTarget } from './hook-edits.ts';
import { renderTargetXml, targetDomainName } from './target-xml.ts';

const UID = '6f0a0000-0000-4000-8000-000000000001';
const TOPOLOGY = JSON.stringify({ numa_cells: [{ id: 0, cpus: [4, 5, 6, 7].map((id) => ({ id, siblings: [id] })) }] });

function vmiOf(cpu: object, status: object = {}, rest: object = {}): Vmi {
  const metadata = { name: 'vm', namespace: 'ns1', uid: UID };
  const spec = { architecture: 'amd64', domain: { cpu, devices: {} }, ...rest };
  return parseVmiJson(JSON.stringify({ metadata, spec, status }));
}

function render(vmi: Vmi, migratableXml: string, targetHasHooks = false): Promise<string> {
  const live = parseDomainXml(migratableXml);
  const virtualSize = (): Promise<number> => Promise.resolve(1_024);
  return renderTargetXml({ vmi, migratableXml, live, targetHasHooks, paths: DEFAULT_DOMAIN_PATHS, virtualSize });
}

const textOf = (tree: XmlElement, name: string): string => {
  const child = xmlChild(tree, name);
  return child === undefined ? '' : renderXmlTree(child);
};

describe('a guest with CPUs of its own', () => {
  const cpu = { cores: 2, sockets: 1, threads: 1, dedicatedCpuPlacement: true };
  const xml =
    "<domain type='kvm'><name>ns1_vm</name><vcpu placement='static' current='1'>2</vcpu>" +
    "<cputune><vcpupin vcpu='0' cpuset='1'/><vcpupin vcpu='1' cpuset='2'/></cputune>" +
    "<os><type>hvm</type></os><features><acpi/><vmcoreinfo state='on'/></features>" +
    "<cpu mode='host-model'><model>Nehalem</model><topology sockets='1' dies='1' cores='2' threads='1'/><feature name='vmx'/></cpu>" +
    '<devices/></domain>';

  test('gets the CPUs of its target, and keeps what KubeVirt does not know', async () => {
    const status = { migrationState: { targetCPUSet: [4, 6], targetNodeTopology: TOPOLOGY } };
    const tree = parseXmlTree(await render(vmiOf(cpu, status), xml));
    expect(textOf(tree, 'cputune')).toBe(
      '<cputune><vcpupin vcpu="0" cpuset="4"></vcpupin><vcpupin vcpu="1" cpuset="6"></vcpupin></cputune>',
    );
    expect(textOf(tree, 'vcpu')).toBe('<vcpu placement="static" current="1">2</vcpu>');
    expect(textOf(tree, 'features')).toBe(
      '<features><acpi></acpi><kvm><hint-dedicated state="on"></hint-dedicated></kvm><vmcoreinfo state="on"></vmcoreinfo></features>',
    );
    const cpuTree = xmlChild(tree, 'cpu');
    expect(cpuTree?.children.map(({ name }) => name)).toEqual(['model', 'topology', 'feature']);
    expect(tree.children.map(({ name }) => name)).toEqual([
      'name',
      'vcpu',
      'cputune',
      'os',
      'features',
      'cpu',
      'devices',
    ]);
  });

  test('that does not fit into the target is refused', async () => {
    const status = { migrationState: { targetCPUSet: [4], targetNodeTopology: TOPOLOGY } };
    const message = 'not enough exclusive threads provided, could not fit 1 core(s)';
    await expect(render(vmiOf(cpu, status), xml)).rejects.toThrow(message);
  });

  test('is left alone where the target has the hook, which gives it the pod’s own', async () => {
    const vmi = vmiOf(cpu, { migrationState: { targetCPUSet: [4, 6], targetNodeTopology: TOPOLOGY } });
    const sent = await render(vmi, xml, true);
    expect(textOf(parseXmlTree(sent), 'cputune')).toContain('cpuset="1"');
    const cpus = {
      cpuSet: [5, 7],
      topology: { numaCells: [{ id: 0, cpus: [5, 7].map((id) => ({ id, siblings: [id] })) }] },
    };
    const adapted = adaptIncoming(sent, { ...incoming(vmi), cpus });
    expect(textOf(parseXmlTree(adapted), 'cputune')).toContain('vcpu="0" cpuset="5"');
  });
});

function incoming(vmi: Vmi): IncomingTarget {
  const cpus = { cpuSet: [], topology: { numaCells: [] } };
  return { vmi, wanted: emptyDomainSpec(), cpus, renamesTaps: false, replacesVgpu: false };
}

describe('an incoming domain', () => {
  const nic = (dev: string, alias: string): string =>
    `<interface type="ethernet"><target dev="${dev}" managed="no"></target><alias name="ua-${alias}"></alias></interface>`;
  const networks = [
    { name: 'default', pod: {} },
    { name: 'blue', multus: { networkName: 'blue' } },
  ];

  test('finds its disks where this pod has them', () => {
    const disk = (file: string): string =>
      `<disk type="file" device="disk"><source file="${file}"></source><target dev="vda"></target><alias name="ua-root"></alias></disk>`;
    const wanted = parseDomainXml(`<domain><devices>${disk('/here/disk.qcow2')}</devices></domain>`);
    const adapted = adaptIncoming(`<domain><devices>${disk('/there/disk.qcow2')}</devices></domain>`, {
      ...incoming(vmiOf({})),
      wanted,
    });
    expect(adapted).toContain('file="/here/disk.qcow2"');
  });

  test('gets taps by their hashed names, but the primary one', () => {
    const xml = `<domain><devices>${nic('tap0', 'default')}${nic('tap1', 'blue')}</devices></domain>`;
    const vmi = vmiOf({}, {}, { networks });
    expect(adaptIncoming(xml, { ...incoming(vmi), renamesTaps: true })).toMatch(/dev="tap0"[^]*dev="tap16477688c0e"/);
    expect(adaptIncoming(xml, incoming(vmi))).toMatch(/dev="tap0"[^]*dev="tap1"/);
  });

  test('gets the virtual GPU of this node', () => {
    const gpu = (uuid: string): string =>
      `<hostdev mode="subsystem" type="mdev"><source><address uuid="${uuid}"></address></source><alias name="ua-gpu-a"></alias></hostdev>`;
    const wanted = parseDomainXml(`<domain><devices>${gpu('aaaa')}</devices></domain>`);
    const xml = `<domain><devices>${gpu('bbbb')}</devices></domain>`;
    expect(adaptIncoming(xml, { ...incoming(vmiOf({})), wanted, replacesVgpu: true })).toContain('uuid="aaaa"');
    expect(adaptIncoming(xml, { ...incoming(vmiOf({})), wanted })).toContain('uuid="bbbb"');
  });
});

test('a domain of which nothing has to change is what libvirt said, whatever it holds', async () => {
  const cases = readCases<VectorInput, unknown>('launcher-migration');
  const xmls = cases.flatMap(({ input }) => input.domain?.migratableXml ?? []);
  expect(xmls.length).toBeGreaterThan(10);
  for (const xml of new Set(xmls)) {
    expect(parseXmlTree(await render(vmiOf({}), xml))).toEqual(parseXmlTree(xml));
  }
});

test.each([
  [{}, 'ns1_vm'],
  [{ targetState: { domainName: 'vm2', domainNamespace: 'ns2' } }, 'ns2_vm2'],
  [{ targetState: { migrationUID: 'm' } }, 'ns1_vm'],
  [{ targetState: { domainName: '', domainNamespace: 'ns2' } }, 'ns1_vm'],
  [{ targetState: { domainName: 'vm2', domainNamespace: null } }, 'ns1_vm'],
])('the domain of %j is %s on its target', (migrationState, name) => {
  expect(targetDomainName(vmiOf({}, { migrationState }))).toBe(name);
});
