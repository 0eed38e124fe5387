import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPluginExpressions } from './program.ts';
import { CelError } from './report.ts';

const VMI = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: {
    name: 'vm',
    namespace: 'ns',
    uid: '1',
    labels: { app: 'test', count: '5' },
    creationTimestamp: '2026-01-02T03:04:05Z',
    generation: 2,
  },
  spec: {
    domain: {
      cpu: { cores: 2 },
      memory: { guest: '1Gi' },
      devices: {
        disks: [
          { name: 'a', disk: { bus: 'virtio' } },
          { name: 'b', cdrom: { bus: 'sata' } },
        ],
      },
    },
    volumes: [
      { name: 'a', containerDisk: { image: 'i' } },
      { name: 'b', persistentVolumeClaim: { claimName: 'c' } },
    ],
    terminationGracePeriodSeconds: 9007199254740993n,
  },
  status: {
    phase: 'Running',
    conditions: [{ type: 'LiveMigratable', status: 'True', lastProbeTime: null, lastTransitionTime: null }],
    runtimeUser: 107,
  },
};
const DOMAIN = `<domain type="kvm" id="3" xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0">
  <name>ns_vm</name>
  <title>old</title>
  <metadata><kubevirt xmlns="http://kubevirt.io"><uid>1</uid></kubevirt></metadata>
  <memory unit="b">1073741824</memory>
  <vcpu placement="static">2</vcpu>
  <cpu mode="host-model"><topology sockets="1" cores="2" threads="1"></topology></cpu>
  <devices>
    <disk type="file" device="disk">
      <source file="/a.img"></source>
      <target dev="vda" bus="virtio"></target>
      <address type="pci" domain="0x0000" bus="0x01" slot="0x00" function="0x0"></address>
    </disk>
    <disk type="block" device="cdrom"><source dev="/dev/b"></source><target dev="sda" bus="sata"></target></disk>
    <interface type="ethernet"><target dev="tap0" managed="no"></target></interface>
  </devices>
  <qemu:commandline><qemu:arg value="-x"></qemu:arg></qemu:commandline>
</domain>`;

const expressions = createPluginExpressions(VMI);
const change = (expression: string): string => expressions.mutation(expression, DOMAIN);
/** What a mutation does, as the lines that are new and those that are gone. */
function differences(expression: string): { added: string[]; removed: string[] } {
  const lines = (text: string): string[] => text.split('\n').map((line) => line.trim());
  const before = lines(change('Domain{}'));
  const after = lines(change(expression));
  return {
    added: after.filter((line) => !before.includes(line)),
    removed: before.filter((line) => !after.includes(line)),
  };
}

describe('conditions, as cel-go decides them', () => {
  test.each<[string, boolean]>([
    ['vmi.Labels["app"] == "test"', true],
    ['vmi.Labels["app"] == "other"', false],
    ['"app" in vmi.Labels && !("none" in vmi.Labels)', true],
    ['has(vmi.Labels.app) && !has(vmi.Labels.none)', true],
    ['vmi.ObjectMeta.Name == vmi.Name && vmi.Kind == "VirtualMachineInstance"', true],
    ['vmi.Spec.Domain.CPU.Cores == 2u', true],
    ['vmi.Spec.Domain.Memory.Guest.Format == "BinarySI"', true],
    ['vmi.Spec.TerminationGracePeriodSeconds == 9007199254740993', true],
    ['vmi.Spec.Volumes.exists(v, has(v.ContainerDisk)) && has(vmi.Spec.Volumes[1].VolumeSource)', true],
    ['vmi.Spec.Domain.Devices.Disks[1].DiskDevice.CDRom.Bus == "sata"', true],
    ['vmi.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution.size() == 0', true],
    ['vmi.Status.Conditions.exists_one(c, c.Type == "LiveMigratable" && c.Status == "True")', true],
    ['vmi.CreationTimestamp.Time == timestamp("2026-01-02T03:04:05Z")', true],
    ['vmi.CreationTimestamp.Time.getFullYear() == 2026', true],
    ['has(vmi.DeletionTimestamp)', false],
    ['vmi.DeletionTimestamp.Time == timestamp("1970-01-01T00:00:00Z")', true],
    ['domainSpec.Type == "kvm" && domainSpec.ID == 3', true],
    ['has(domainSpec.Memory) && !has(domainSpec.OS)', true],
    ['domainSpec.OS.Type.Machine == ""', true],
    ['domainSpec.OS == null', false],
    ['domainSpec.CPU.Topology.Cores == 2', true],
    ['domainSpec.Devices.Disks.exists(d, d.Source.Block.Dev == "/dev/b")', true],
    ['domainSpec.Devices.Disks.all(d, has(d.Source.File))', false],
    ['domainSpec.Devices.Disks.map(d, d.Target.Dev) == ["vda", "sda"]', true],
    ['domainSpec.Devices.Disks.filter(d, d.Target.Bus == "sata").size() == 1', true],
    ['domainSpec.Devices.Disks[0].Address.PCI.Bus == 1u', true],
    ['domainSpec.Metadata.XML.contains("http://kubevirt.io")', true],
    ['domainSpec.QEMUCommandline.Args[0].Value == "-x"', true],
    ['domainSpec.Name.matches("^ns_.*m$") && matches(domainSpec.Name, "s_v")', true],
    ['domainSpec.Memory == domainSpec.Memory && domainSpec != Domain{}', true],
    ['type(domainSpec) == Domain && type(Domain{}) == libvirtxml.Domain', true],
    ['type(vmi) == v1.VirtualMachineInstance && type(1u) == uint && type([1]) == list', true],
    ['[1, 0].exists(x, 4 / x == 4) && (true || 1 / 0 == 1)', true],
    ['{"a": 1, 2u: dyn("x")}[dyn(2)] == "x"', true],
    ['int("5") + 1 == 6 && string(1.5) == "1.5" && double("2") == 2.0 && uint(3) == 3u', true],
    ['"äöü😀".size() == 4 && size(b"ab") == 2', true],
    ['duration("90m").getHours() == 1 && string(duration("1.5s")) == "1.5s"', true],
    ['timestamp(1) + duration("1s") == timestamp("1970-01-01T00:00:02Z")', true],
    ['duration("1.5s").getMilliseconds() == 1500 && int(duration("1s")) == 1000000000', true],
    ['string(1000000.0) == "1e+06" && string(0.25) == "0.25"', true],
  ])('%s: %s', (expression, decided) => {
    expect(expressions.condition(expression, DOMAIN)).toBe(decided);
  });

  test.each([
    'vmi.metadata.labels["app"] == "test"',
    'vmi.metadata.name == "vm" && vmi.apiVersion == "kubevirt.io/v1"',
    'vmi.status.phase == "Running" && vmi.status.runtimeUser == 107u',
    "vmi.status.conditions.exists(c, c.type == 'LiveMigratable' && c.status == 'True')",
    'vmi.spec.volumes.exists(v, has(v.persistentVolumeClaim) && v.persistentVolumeClaim.claimName == "c")',
    'vmi.spec.domain.devices.disks[0].disk.bus == "virtio"',
  ])('a VMI has its names in JSON too: %s', (expression) => {
    expect(expressions.condition(expression, DOMAIN)).toBe(true);
  });
});

describe('mutations, merged as KubeVirt merges them', () => {
  test.each<[string, string[], string[]]>([
    ['Domain{}', [], []],
    ['Domain{Title: "a<b"}', ['<title>a&lt;b</title>'], ['<title>old</title>']],
    ['Domain{Title: ""}', [], ['<title>old</title>']],
    ['Domain{Title: true ? "x" : "y"}', ['<title>x</title>'], ['<title>old</title>']],
    [
      'Domain{Memory: DomainMemory{Unit: "KiB"}}',
      ['<memory unit="KiB">1073741824</memory>'],
      ['<memory unit="b">1073741824</memory>'],
    ],
    [
      'Domain{VCPU: DomainVCPU{Value: domainSpec.VCPU.Value * 2u, Current: 1u}}',
      ['<vcpu placement="static" current="1">4</vcpu>'],
      ['<vcpu placement="static">2</vcpu>'],
    ],
    [
      'Domain{CPU: DomainCPU{Mode: "host-passthrough"}}',
      ['<cpu mode="host-passthrough">'],
      ['<cpu mode="host-model">'],
    ],
    [
      'Domain{CPU: DomainCPU{Topology: null}}',
      ['<cpu mode="host-model"></cpu>'],
      ['<cpu mode="host-model">', '<topology sockets="1" cores="2" threads="1"></topology>', '</cpu>'],
    ],
    [
      'Domain{Devices: DomainDeviceList{Watchdogs: [DomainWatchdog{Model: "i6300esb", Action: "none"}]}}',
      ['<watchdog model="i6300esb" action="none"></watchdog>'],
      [],
    ],
    [
      'Domain{Devices: DomainDeviceList{Disks: domainSpec.Devices.Disks.filter(d, d.Target.Bus == "virtio")}}',
      [],
      [
        '<disk type="block" device="cdrom">',
        '<source dev="/dev/b"></source>',
        '<target dev="sda" bus="sata"></target>',
      ],
    ],
    [
      'Domain{Devices: DomainDeviceList{Disks: domainSpec.Devices.Disks + [DomainDisk{Source: DomainDiskSource{' +
        'Network: DomainDiskSourceNetwork{Protocol: "rbd", Name: "p/i"}}, Target: DomainDiskTarget{Dev: "vdb"}}]}}',
      ['<disk type="network">', '<source protocol="rbd" name="p/i"></source>', '<target dev="vdb"></target>'],
      [],
    ],
    [
      'Domain{Features: DomainFeatureList{HyperV: DomainFeatureHyperV{Spinlocks: ' +
        'DomainFeatureHyperVSpinlocks{State: "on", Retries: 8191u}}}}',
      ['<features>', '<hyperv>', '<spinlocks state="on" retries="8191"></spinlocks>', '</hyperv>', '</features>'],
      [],
    ],
    [
      'Domain{IOThreads: 2u, IOThreadIDs: DomainIOThreadIDs{IOThreads: [1, 2].map(i, DomainIOThread{ID: uint(i)})}}',
      [
        '<iothreads>2</iothreads>',
        '<iothreadids>',
        '<iothread id="1"></iothread>',
        '<iothread id="2"></iothread>',
        '</iothreadids>',
      ],
      [],
    ],
    [
      'Domain{QEMUCommandline: DomainQEMUCommandline{Envs: [DomainQEMUCommandlineEnv{Name: "A", Value: "b"}]}}',
      ['<qemu:env name="A" value="b"></qemu:env>'],
      [],
    ],
    ['Domain{Title: vmi.Name + "-" + vmi.Namespace}', ['<title>vm-ns</title>'], ['<title>old</title>']],
  ])('%s', (expression, added, removed) => {
    expect(differences(expression)).toEqual({ added, removed });
  });

  test.each([
    ['Domain{Devices: null}', 'devices'],
    ['Domain{CPU: dyn(null)}', 'cpu'],
  ])('%s takes the element away', (expression, element) => {
    expect(change(expression)).not.toContain(`<${element}`);
  });
});

describe('what cannot be used says why, in the words of cel-go', () => {
  test.each<[string, string]>([
    ['vmi.Name', 'condition must return bool, got string'],
    ['vmi.Foo == 1', "compiling expression: ERROR: <input>:1:4: undefined field 'Foo'\n | vmi.Foo == 1\n | ...^"],
    [
      'vmi.Name ==\n  zzz(1)',
      "compiling expression: ERROR: <input>:2:6: undeclared reference to 'zzz' (in container 'libvirtxml')\n |   zzz(1)\n | .....^",
    ],
    [
      'vmi.Name == 1',
      "compiling expression: ERROR: <input>:1:10: found no matching overload for '_==_' applied to '(string, int)'" +
        '\n | vmi.Name == 1\n | .........^',
    ],
    ['vmi.Name.all(x, true)', "expression of type 'string' cannot be range of a comprehension"],
    ['[1].all(x, x)', "expected type 'bool' but found 'int'"],
    ['invalid @@@ syntax', 'compiling expression: ERROR: <input>:1:9: Syntax error: '],
    ['has("a")', 'invalid argument to has() macro'],
    ['9223372036854775808 > 0', 'invalid int literal'],
    [`"${'x'.repeat(100_000)}" == ""`, 'expression code point size exceeds limit: size: 100008, limit 100000'],
    [`${'('.repeat(2_000)}1${')'.repeat(2_000)} == 1`, 'expression recursion limit exceeded: 250'],
    ['vmi.Labels["none"] == ""', 'evaluating expression: no such key: none'],
    ['vmi.Spec.Volumes[9].Name == ""', 'evaluating expression: index out of bounds: 9'],
    ['1 / 0 == 1 || false', 'evaluating expression: division by zero'],
    ['9223372036854775807 + 1 > 0', 'evaluating expression: integer overflow'],
    ['int("x") == 1', "evaluating expression: type conversion error from 'string' to 'int'"],
    ['double("x") == 1.0', "evaluating expression: type conversion error from 'string' to 'double'"],
    ['Domain{Title: "x"}.Name == ""', "evaluating expression: field 'Name' not set"],
    ['Domain{} == Domain{}', 'evaluating expression: Equal not supported for libvirtxml.Domain'],
  ])('condition %s', (expression, text) => {
    expect(() => expressions.condition(expression, DOMAIN)).toThrow(text);
  });

  test.each<[string, string]>([
    ['domainSpec.Name', 'mutation must return a Domain object, got string'],
    ['domainSpec', 'mutation must return a Domain object, got libvirtxml.Domain'],
    [
      'Domainn{Title: "x"}',
      "compiling expression: ERROR: <input>:1:8: undeclared reference to 'Domainn' (in container 'libvirtxml')",
    ],
    ['Domain{Bogus: "x"}', "compiling expression: ERROR: <input>:1:13: undefined field 'Bogus'"],
    [
      'Domain{Title: 1, Other: 2}',
      "<input>:1:13: expected type of field 'Title' is 'string' but provided type is 'int'",
    ],
    ['Domain{Title: 1, Other: 2}', "\nERROR: <input>:1:23: undefined field 'Other'"],
    ['Domain{Title: null}', "expected type of field 'Title' is 'string' but provided type is 'null'"],
    ['int{}', "'int' is not a message type"],
    ['DomainCPU{Mode: "x"}', 'merging mutation result: cannot set field Mode on Domain'],
    ['Domain{Title: dyn(1)}', 'merging mutation result: setting field Title on Domain: converting to string: '],
    ['Domain{SysInfo: [null]}', 'merging mutation result: setting field SysInfo on Domain: converting list element: '],
    ['Domain{Metadata: DomainMetadata{XML: "<a"}}', 'XML of metadata: '],
  ])('mutation %s', (expression, text) => {
    expect(() => change(expression)).toThrow(text);
  });
});

describe('an expression costs what it costs in cel-go, and may not cost more than its limit', () => {
  test.each<[string, number]>([
    ['vmi.Name == "vm"', 3],
    ['vmi.Labels["app"] == "test"', 4],
    ['domainSpec.Devices.Disks.exists(d, d.Target.Dev == "vda")', 15],
    ['"abcdefghijklmnopqrst".contains("bc") && "ab".matches("a.*")', 3],
    ['1 in [1, 2, 3]', 13],
    ['type(domainSpec) == Domain', 3],
  ])('%s: %d', (expression, cost) => {
    expect(createPluginExpressions(VMI, cost).condition(expression, DOMAIN)).toBe(true);
    expect(() => createPluginExpressions(VMI, cost - 1).condition(expression, DOMAIN)).toThrow(
      /^evaluating expression: operation cancelled: actual cost limit exceeded$/,
    );
  });

  test('no logic can do without what was not paid for', () => {
    const poor = createPluginExpressions(VMI, 20);
    expect(() => poor.condition('[1, 2, 3].all(x, x > 0) || true', DOMAIN)).toThrow('actual cost limit exceeded');
  });
});

describe('an expression that nobody meant', () => {
  const seeds = [
    'vmi.Labels["app"] == "test" && [1, 2].exists(x, x > 1u ? {"a": 1.5}.a : b"c")',
    'Domain{CPU: DomainCPU{Mode: "x" + string(2)}, Devices: DomainDeviceList{Disks: domainSpec.Devices.Disks + []}}',
    'domainSpec.Devices.Disks.map(d, has(d.Source), d.Target.Dev).filter(s, s.matches("^v.*$")) == null',
    'duration("1h") < timestamp(1) - timestamp(2) || !(dyn(vmi).Name in {1: true}) && type(vmi) != int',
  ];
  const pieces = seeds.flatMap((seed) => seed.match(/\w+|\W/g) ?? []);
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((parts) => parts.join('')),
    fc
      .tuple(fc.constantFrom(...seeds), fc.nat(120), fc.nat(3), fc.constantFrom(...pieces, ''))
      .map(([seed, at, cut, piece]) => seed.slice(0, at) + piece + seed.slice(at + cut)),
  );

  test('has a result or a reason', () => {
    fc.assert(
      fc.property(text, fc.boolean(), (expression, isCondition) => {
        try {
          if (isCondition) expressions.condition(expression, DOMAIN);
          else change(expression);
        } catch (caught) {
          expect(caught).toBeInstanceOf(CelError);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
