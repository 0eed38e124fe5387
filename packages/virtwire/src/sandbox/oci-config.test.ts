import { expect, test } from 'vitest';
import { renderOciConfig } from './oci-config.ts';
import type { SandboxSpec } from './oci-config.ts';

interface Config {
  readonly process: {
    readonly user: object;
    readonly args: string[];
    readonly env: string[];
    readonly noNewPrivileges: boolean;
    readonly capabilities: Record<string, string[]>;
    readonly oomScoreAdj?: number;
  };
  readonly mounts: { readonly destination: string; readonly source: string; readonly options: string[] }[];
  readonly linux: {
    readonly cgroupsPath: string;
    readonly namespaces: { readonly type: string; readonly path?: string }[];
    readonly devices: { readonly path: string; readonly uid: number }[];
    readonly resources: {
      readonly devices: { readonly allow: boolean; readonly major?: number; readonly minor?: number }[];
    };
  };
}

const spec: SandboxSpec = {
  podUid: 'pod-1',
  hostname: 'vm1',
  rootfs: '/run/r',
  emptyDirs: '/pods/pod-1/volumes/kubernetes.io~empty-dir',
  etcDir: '/run/etc',
  netnsPath: '/run/netns/virtwire-pod-1',
  args: ['/bin/launcher', '--name', 'vm1'],
  binDir: '/usr/lib/virtwire/node_modules/.bin',
  env: ['XDG_RUNTIME_DIR=/var/run'],
  binds: [{ source: '/images/a', destination: '/var/run/kubevirt-image-volume/disk_0', readonly: true }],
  devices: [{ path: '/dev/net/tun', major: 10, minor: 200 }],
  user: 107,
  cgroupsPath: '/virtwire/pod-1',
};

const render = (change: Partial<SandboxSpec> = {}): Config => renderOciConfig({ ...spec, ...change }) as Config;

test('the launcher runs as uid 107 with one capability and cannot gain others', () => {
  const { process } = render();
  expect(process.user).toEqual({ uid: 107, gid: 107, additionalGids: [107] });
  expect(process.noNewPrivileges).toBe(true);
  for (const set of Object.values(process.capabilities)) expect(set).toEqual(['CAP_NET_BIND_SERVICE']);
});

test('a root-mode launcher also gets CAP_SYS_NICE', () => {
  expect(render({ user: 0 }).process.capabilities['effective']).toEqual(['CAP_NET_BIND_SERVICE', 'CAP_SYS_NICE']);
});

test('it has namespaces of its own and the prepared network', () => {
  const { namespaces } = render().linux;
  expect(namespaces.map((n) => n.type).sort()).toEqual(['cgroup', 'ipc', 'mount', 'network', 'pid', 'uts']);
  expect(namespaces.find((n) => n.type === 'network')?.path).toBe('/run/netns/virtwire-pod-1');
});

test('no oom_score_adj is set, since a negative one is refused on some machines', () => {
  expect(render().process.oomScoreAdj).toBeUndefined();
});

test('every emptyDir is mounted at its path, outer ones first', () => {
  const mounts = render().mounts.filter((m) => m.source.startsWith(spec.emptyDirs));
  const destinations = mounts.map((m) => m.destination);
  expect(destinations).toEqual([
    '/var/run/kubevirt-private',
    '/var/run/kubevirt',
    '/var/run/kubevirt/sockets',
    '/var/run/libvirt',
    '/var/run/kubevirt-ephemeral-disks',
    '/var/run/kubevirt/container-disks',
    '/var/run/kubevirt/hotplug-disks',
  ]);
});

test.each([
  ['/var/run/kubevirt/container-disks', 'rslave'],
  ['/var/run/kubevirt/hotplug-disks', 'rslave'],
  ['/var/run/kubevirt/sockets', 'rprivate'],
])('%s is mounted %s, so that what the handler mounts later arrives or not', (path, propagation) => {
  expect(render().mounts.find((m) => m.destination === path)?.options).toContain(propagation);
});

test('the run directory is mounted before what lies in it', () => {
  const destinations = render().mounts.map((m) => m.destination);
  expect(destinations.indexOf('/run')).toBeLessThan(destinations.indexOf('/var/run/kubevirt'));
});

test("the host's private directories are hidden", () => {
  const destinations = render().mounts.map((m) => m.destination);
  expect(destinations).toEqual(expect.arrayContaining(['/root', '/home']));
});

test('images are bound read-only', () => {
  const image = render().mounts.find((m) => m.destination.endsWith('disk_0'));
  expect(image?.options).toContain('ro');
});

test('only listed devices are made and allowed; they belong to root until the handler hands them over', () => {
  const { linux } = render();
  expect(linux.devices).toEqual([
    { type: 'c', path: '/dev/net/tun', major: 10, minor: 200, fileMode: 0o660, uid: 0, gid: 0 },
  ]);
  expect(linux.resources.devices[0]).toEqual({ allow: false, access: 'rwm' });
  expect(linux.resources.devices.some((d) => d.major === 10 && d.minor === 200 && d.allow)).toBe(true);
  expect(linux.resources.devices.some((d) => d.minor === 232)).toBe(false);
});
