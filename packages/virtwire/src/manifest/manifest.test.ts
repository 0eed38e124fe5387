import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { checkManifest } from './check.ts';
import { findVmFiles } from './files.ts';
import { parseManifest } from './parse.ts';
import { renderProblem } from './problem.ts';
import type { Problem } from './problem.ts';

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
      expect.stringContaining('kernelBoot.container.kernelPath: must be a path, as text'),
      expect.stringContaining('kernelBoot.container.initrdPath: must be a path, as text'),
    ]),
  );
});
