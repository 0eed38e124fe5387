import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { checkManifest } from './check.ts';
import { findVmFiles } from './files.ts';
import { parseManifest } from './parse.ts';
import { renderProblem } from './problem.ts';
import type { Problem } from './problem.ts';
import { readManifest } from './read.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-manifest-'));
  mkdirSync(join(dir, 'image/disk'), { recursive: true });
  writeFileSync(join(dir, 'image/disk/a.img'), '');
});
afterEach(() => rmSync(dir, { recursive: true }));

const file = (): string => join(dir, 'vm.yaml');

/** Everything that is wrong with a manifest's text, as `virtwire run` finds it. */
function problemsOf(text: string): string[] {
  const { vmis, problems } = parseManifest(file(), text);
  const all: Problem[] = [...problems];
  for (const vm of vmis) all.push(...checkManifest(vm, join(dir, 'claims')));
  return all.map((problem) => renderProblem(problem).replaceAll(dir, 'DIR'));
}

interface Parts {
  readonly kind?: string;
  readonly name?: string;
  readonly memory?: string;
  readonly disks?: object[];
  readonly volumes?: object[];
  readonly interfaces?: object[];
  readonly networks?: object[];
  readonly firmware?: object;
}

function manifest(parts: Parts = {}): string {
  return stringify({
    apiVersion: 'kubevirt.io/v1',
    kind: parts.kind ?? 'VirtualMachineInstance',
    metadata: { name: parts.name ?? 'vm1' },
    spec: {
      domain: {
        memory: { guest: parts.memory ?? '64Mi' },
        ...(parts.firmware === undefined ? {} : { firmware: parts.firmware }),
        devices: {
          disks: parts.disks ?? [{ name: 'root', disk: { bus: 'virtio' } }],
          interfaces: parts.interfaces ?? [{ name: 'default', masquerade: {} }],
        },
      },
      networks: parts.networks ?? [{ name: 'default', pod: {} }],
      volumes: parts.volumes ?? [{ name: 'root', containerDisk: { image: 'image' } }],
    },
  });
}

test('a good manifest has no problems', () => {
  expect(problemsOf(manifest())).toEqual([]);
});

test.each<[string, string, string]>([
  ['bad YAML', 'a: [1,\nb: }', 'DIR/vm.yaml:2:1: bad YAML'],
  ['another kind', manifest({ kind: 'Pod' }), 'DIR/vm.yaml: kind must be VirtualMachineInstance'],
  ['no object', '- 1', 'DIR/vm.yaml: is no VirtualMachineInstance'],
  ['a bad name', manifest({ name: 'Not_OK' }), 'DIR/vm.yaml: metadata.name: "Not_OK" is no name'],
  ['a missing name', manifest().replace('name: vm1', 'labels: {}'), 'DIR/vm.yaml: metadata.name: is missing'],
  [
    'an alias within its own anchor',
    'apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: { name: a }\nspec: &s { domain: {}, more: *s }\n',
    'DIR/vm.yaml: bad YAML: an alias stands within what it stands for',
  ],
  ['a bad quantity', manifest({ memory: '64Megs' }), 'DIR/vm.yaml: spec.domain.memory.guest: "64Megs" is no quantity'],
  [
    'a disk without volume',
    manifest({ disks: [{ name: 'root' }, { name: 'data' }] }),
    'DIR/vm.yaml: spec.domain.devices.disks[1].name: no volume is named "data"',
  ],
  [
    'a missing image',
    manifest({ volumes: [{ name: 'root', containerDisk: { image: 'nothing' } }] }),
    'DIR/vm.yaml: spec.volumes[0].containerDisk.image: no directory DIR/nothing',
  ],
  [
    'a missing file in an image',
    manifest({ volumes: [{ name: 'root', containerDisk: { image: 'image', path: '/disk/b.img' } }] }),
    'DIR/vm.yaml: spec.volumes[0].containerDisk.path: no disk file: DIR/image/disk/b.img is missing',
  ],
  [
    'a missing host disk',
    manifest({ volumes: [{ name: 'root', hostDisk: { path: '/nowhere/d.img', type: 'Disk' } }] }),
    'DIR/vm.yaml: spec.volumes[0].hostDisk.path: no disk file /nowhere/d.img',
  ],
  [
    'a missing claim',
    manifest({ volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'c' } }] }),
    'DIR/vm.yaml: spec.volumes[0]: no disk file DIR/claims/default/c/disk.img',
  ],
  [
    'a volume that needs Kubernetes',
    manifest({ volumes: [{ name: 'root', configMap: { name: 'c' } }] }),
    'DIR/vm.yaml: spec.volumes[0].configMap: needs Kubernetes',
  ],
  [
    'an interface without network',
    manifest({
      interfaces: [
        { name: 'default', masquerade: {} },
        { name: 'x', bridge: {} },
      ],
    }),
    'DIR/vm.yaml: spec.domain.devices.interfaces[1].name: no network is named "x"',
  ],
  [
    'a missing kernel',
    manifest({ firmware: { kernelBoot: { container: { image: 'image', kernelPath: '/vmlinuz' } } } }),
    'DIR/vm.yaml: spec.domain.firmware.kernelBoot.container.kernelPath: no file DIR/image/vmlinuz',
  ],
  [
    'a list that is none',
    manifest().replace(/volumes:[\s\S]*$/, 'volumes: 3\n'),
    'DIR/vm.yaml: spec.volumes: must be a list',
  ],
])('%s is one line with file and field', (_title, text, expected) => {
  const problems = problemsOf(text);
  expect(problems.length).toBeGreaterThan(0);
  expect(problems[0]).toContain(expected);
  expect(problems[0]).not.toContain('\n');
});

test('a VirtualMachine stands for its template', () => {
  const vm = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'vm2', namespace: 'ns1' },
    spec: { template: { metadata: { labels: { a: 'b' } }, spec: { domain: { memory: { guest: '64Mi' } } } } },
  };
  const [read] = parseManifest('f', stringify(vm)).vmis;
  expect(read?.vmi).toMatchObject({
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm2', namespace: 'ns1', labels: { a: 'b' } },
  });
});

test('mistyped fields are no problem, but told with file and field', () => {
  const read = parseManifest('f', withField('spec.domain.cpu', { core: 2 }));
  expect(read.problems).toEqual([]);
  expect(read.vmis[0]?.unknown.map(renderProblem)).toEqual([
    'f: spec.domain.cpu.core: KubeVirt has no such field: it is ignored',
  ]);
});

test('one bad document of a file does not hide the good one', () => {
  const { vmis, problems } = parseManifest('f', `${manifest({ kind: 'Pod' })}---\n${manifest()}`);
  expect(vmis.map(({ vmi }) => vmi.metadata.name)).toEqual(['vm1']);
  expect(problems).toHaveLength(1);
});

test('a status that a manifest carries is not believed', () => {
  const [read] = parseManifest('f', `${manifest()}status:\n  phase: Running\n`).vmis;
  expect(read?.vmi.status).toBeUndefined();
});

test('an image is bound at the place of its volume, counted over all volumes', () => {
  const text = manifest({
    disks: [{ name: 'a' }, { name: 'root' }],
    volumes: [
      { name: 'a', emptyDisk: { capacity: '1Mi' } },
      { name: 'root', containerDisk: { image: 'image' } },
    ],
  });
  const vmi = parseManifest(file(), text).vmis[0]?.vmi;
  const binds = vmi === undefined ? [] : findVmFiles(vmi, { file: file(), claimsDir: dir }).binds;
  expect(binds).toEqual([
    { source: join(dir, 'image'), destination: '/var/run/kubevirt-image-volume/disk_1', readonly: true },
  ]);
});

test.each([
  ['an alias without anchor', 'metadata: *nowhere\n', 'Unresolved alias'],
  ['aliases that grow without end', bomb(), 'Excessive alias count'],
])('%s is a problem of this file, and its other documents are read', (_title, text, what) => {
  const { vmis, problems } = parseManifest(file(), `${manifest()}---\n${text}`);
  expect(vmis).toHaveLength(1);
  expect(problems.map((problem) => renderProblem(problem))).toEqual([
    expect.stringContaining(`vm.yaml: bad YAML: ${what}`),
  ]);
});

function bomb(): string {
  const nine = (item: string): string => `[${Array(9).fill(item).join(',')}]`;
  return `a: &a ${nine('x')}\nb: &b ${nine('*a')}\nc: &c ${nine('*b')}\nd: &d ${nine('*c')}\n`;
}

test('a path of the kernel that is no text is told with its field', () => {
  const kernelBoot = { container: { image: 'image', kernelPath: 5, initrdPath: ['x'] } };
  expect(problemsOf(manifest({ firmware: { kernelBoot } }))).toEqual(
    expect.arrayContaining([
      expect.stringContaining('kernelBoot.container.kernelPath: must be text, not 5'),
      expect.stringContaining('kernelBoot.container.initrdPath: must be text'),
    ]),
  );
});

/** A good VMI with one field of another value. */
function withField(path: string, value: unknown): string {
  const vmi = parse(manifest()) as Record<string, unknown>;
  const names = path.split('.');
  const last = names.pop() ?? '';
  let at: Record<string, unknown> = vmi;
  for (const name of names) at = (at[name] ??= {}) as Record<string, unknown>;
  at[last] = value;
  return stringify(vmi);
}

test.each<[path: string, value: unknown, field: string, what: string]>([
  ['spec.domain.cpu.cores', 'two', '', 'must be a whole number, 0 or more, not "two"'],
  ['spec.domain.cpu.cores', 1.5, '', 'must be a whole number, 0 or more, not 1.5'],
  ['spec.terminationGracePeriodSeconds', 'x', '', 'must be a whole number of seconds, 0 or more, not "x"'],
  ['metadata.labels', 5, '', 'must be an object, not 5'],
  ['metadata.labels.a', 5, '', 'must be text, not 5'],
  ['metadata.annotations', ['a'], '', 'must be an object, not a list'],
  ['spec.domain.machine', [], '', 'must be an object, not a list'],
  ['spec.domain.devices.disks.0.disk', true, 'spec.domain.devices.disks[0].disk', 'must be an object, not true'],
  ['spec.domain.devices.interfaces.0.ports', 'str', 'spec.domain.devices.interfaces[0].ports', 'must be a list'],
  [
    'spec.domain.devices.interfaces.0.ports',
    [{ port: '80' }],
    'spec.domain.devices.interfaces[0].ports[0].port',
    'must be a whole number from 1 to 65535, not "80"',
  ],
  ['spec.domain.devices.disks.0', null, 'spec.domain.devices.disks[0]', 'is empty'],
  ['spec.domain.memory.guest', -1, '', '-1 is less than nothing'],
  ['spec.domain.memory.guest', ['64Mi'], '', 'must be an amount such as 512Mi, not a list'],
  ['spec.domain.memory', '64Mi', '', 'must be an object, not "64Mi"'],
  ['spec.domain.features.acpi.enabled', 'yes', '', 'must be true or false, not "yes"'],
  ['spec.volumes.0.containerDisk.path', 5, 'spec.volumes[0].containerDisk.path', 'must be text, not 5'],
  [
    'spec.volumes',
    [{ name: 'root', persistentVolumeClaim: { claimName: 5 } }],
    'spec.volumes[0].persistentVolumeClaim.claimName',
    'must be text',
  ],
])('%s: %j is one line with file and field before a start, not a failure during it', (path, value, field, what) => {
  const problems = problemsOf(withField(path, value));
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(`DIR/vm.yaml: ${field === '' ? path : field}: ${what}`);
});

test.each<[path: string, value: unknown, problem: string]>([
  ['spec.domain.memory.guest', '0', 'spec.domain.memory.guest: is 0'],
  ['spec.architecture', 'z80', 'spec.architecture: "z80" is not that of this machine'],
  ['spec.domain.devices.disks.0.disk.bus', 'scssi', 'disks[0].disk.bus: "scssi" is none of virtio, sata, scsi, usb'],
  [
    'spec.domain.devices.disks.0',
    { name: 'root', cdrom: { bus: 'virtio' } },
    'disks[0].cdrom.bus: "virtio" is none of',
  ],
  ['spec.domain.devices.disks.0', { name: 'root', lun: { bus: 'usb' } }, 'disks[0].lun.bus: "usb" is none of'],
  ['spec.domain.devices.disks.0.cdrom', {}, 'disks[0].cdrom: disk is there, too'],
  ['spec.domain.devices.disks.0.cache', 'fast', 'disks[0].cache: "fast" is none of none,'],
  ['spec.domain.devices.disks.0.io', 'aio', 'disks[0].io: "aio" is none of native,'],
  ['spec.domain.devices.interfaces.0.bridge', {}, 'interfaces[0].masquerade: bridge is there, too'],
  ['spec.domain.devices.interfaces.0.macAddress', 'de:ad:00:00:be', 'macAddress: "de:ad:00:00:be" is no MAC address'],
  ['spec.domain.devices.gpus', [{ name: 'g' }], 'spec.domain.devices.gpus[0]: needs Kubernetes'],
  ['spec.domain.devices.hostDevices', [{ name: 'h' }], 'spec.domain.devices.hostDevices[0]: needs Kubernetes'],
  ['spec.domain.devices.filesystems', [{ name: 'f', virtiofs: {} }], 'devices.filesystems[0]: needs Kubernetes'],
  ['spec.volumes.0.emptyDisk', { capacity: '1Mi' }, 'spec.volumes[0].emptyDisk: containerDisk is there, too'],
  ['spec.volumes.0', { name: 'root', emptyDisk: {} }, 'spec.volumes[0].emptyDisk.capacity: is missing'],
  [
    'spec.volumes.0',
    { name: 'root', hostDisk: { path: '/x', type: 'disk' } },
    'hostDisk.type: "disk" is none of Disk,',
  ],
  ['spec.volumes.0', { name: 'root', hostDisk: { path: '/', type: 'Disk' } }, 'hostDisk.path: / is a directory'],
  ['spec.volumes.0', { name: 'root', persistentVolumeClaim: {} }, 'persistentVolumeClaim.claimName: is missing'],
  ['spec.volumes.0', { name: 'root', cloudInitNoCloud: {} }, 'spec.volumes[0].cloudInitNoCloud: is empty'],
  [
    'spec.volumes.0',
    { name: 'root', cloudInitConfigDrive: { userData: 'a', userDataBase64: 'YQ==' } },
    'cloudInitConfigDrive.userDataBase64: userData is there, too',
  ],
  [
    'spec.volumes.0',
    { name: 'root', cloudInitNoCloud: { networkDataBase64: '%' } },
    'cloudInitNoCloud.networkDataBase64: is no base64',
  ],
  ['spec.domain.firmware', { bootloader: { bios: {}, efi: {} } }, 'firmware.bootloader.efi: bios is there, too'],
  ['spec.domain.firmware', { kernelBoot: { kernelArgs: 'a' } }, 'firmware.kernelBoot.container: is missing'],
  ['spec.domain.firmware', { kernelBoot: { container: { image: 'image' } } }, 'container.kernelPath: is missing'],
])('%s: %j, which KubeVirt would refuse, is told with its field', (path, value, problem) => {
  expect(problemsOf(withField(path, value))).toEqual([expect.stringContaining(problem)]);
});

test('a place in the boot order that is taken is told with whom has it', () => {
  const text = manifest({
    disks: [{ name: 'root', bootOrder: 1 }],
    interfaces: [{ name: 'default', masquerade: {}, bootOrder: 1 }],
  });
  expect(problemsOf(text)).toEqual(['DIR/vm.yaml: spec.domain.devices.interfaces[0].bootOrder: 1 is that of root']);
});

test.each<[path: string, value: unknown]>([
  ['spec.architecture', { x64: 'amd64' }[process.arch as string] ?? process.arch],
  ['spec.domain.devices.disks.0', { name: 'root', cdrom: { bus: 'sata' }, cache: 'none', io: 'native', bootOrder: 1 }],
  ['spec.domain.devices.interfaces.0.macAddress', '02-00-00-00-00-FF'],
  ['spec.volumes.0', { name: 'root', cloudInitNoCloud: { userDataBase64: 'YW Jj\nZA==', networkData: 'a' } }],
  ['spec.domain.firmware', { bootloader: { efi: { secureBoot: false } } }],
])('%s: %j is one of the choices', (path, value) => {
  expect(problemsOf(withField(path, value))).toEqual([]);
});

test.each<[path: string, value: unknown]>([
  ['spec.domain.future', [1]],
  ['spec.domain.cpu.future', 'x'],
  ['metadata.labels', null],
  ['spec.domain.cpu', null],
  ['spec.domain.memory.guest', 67_108_864],
])('%s: %j is accepted: not set, or not known here', (path, value) => {
  expect(problemsOf(withField(path, value))).toEqual([]);
});

test.each<[string, () => string, string]>([
  ['a pipe that nobody writes to', pipe, 'is no manifest: it is no plain file'],
  ['a device without end', () => '/dev/zero', 'is no manifest: it is no plain file'],
  ['a directory', () => dir, 'is no manifest: it is a directory'],
  ['a file of 5 MiB', large, 'is no manifest: it is larger than 4 MiB'],
  ['a file that there is not', () => join(dir, 'none.yaml'), 'no such file'],
])('%s as manifest is refused in one line and not read', (_title, make, what) => {
  const path = make();
  expect(readManifest(path)).toEqual({ vmis: [], problems: [{ where: path, field: '', what }] });
});

function pipe(): string {
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  return join(dir, 'pipe');
}

function large(): string {
  writeFileSync(join(dir, 'large.yaml'), '');
  truncateSync(join(dir, 'large.yaml'), 5 << 20);
  return join(dir, 'large.yaml');
}

test('secrets and sidecars, which nobody would bring here, are told of', () => {
  const whole = parse(manifest()) as { metadata: object; spec: object };
  const annotations = { 'hooks.kubevirt.io/hookSidecars': '[{"image":"hook"}]' };
  const source = { secret: { secretName: 's' } };
  const accessCredentials = [{ userPassword: { source, propagationMethod: { qemuGuestAgent: {} } } }];
  const text = stringify({
    ...whole,
    metadata: { ...whole.metadata, annotations },
    spec: { ...whole.spec, accessCredentials },
  });
  expect(problemsOf(text)).toEqual([
    'DIR/vm.yaml: spec.accessCredentials[0]: secrets need Kubernetes: put users and keys in cloud-init userData',
    'DIR/vm.yaml: metadata.annotations["hooks.kubevirt.io/hookSidecars"]: sidecars need Kubernetes: leave the annotation out',
  ]);
});
