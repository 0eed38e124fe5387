import { describe, expect, test } from 'vitest';
import { replacePvcByHostDisk } from '../host-disk/replace-pvc.ts';
import { parseJson, renderJson } from '../json/lossless.ts';
import { readBundle } from '../testing/bundle.ts';
import type { Vmi } from '../vmi/vmi.ts';
import { applyVmiDefaults } from './apply-defaults.ts';
import { clusterDefaults, type KubeVirtConfiguration } from './cluster.ts';

interface Context {
  readonly hostArchitecture: string;
  readonly kubeVirtConfiguration: KubeVirtConfiguration;
  readonly generatedFirmwareUUID: string;
}

const files = new Map(readBundle('converter').map((file) => [file.path, file.json]));
const names = [...files.keys()]
  .filter((path) => path.endsWith('/vmi.launcher.json'))
  .map((path) => path.replace('/vmi.launcher.json', ''));
const UUID = 'f1f1f1f1-0000-4000-8000-000000000001';

function vmiWith(domain: Partial<Vmi['spec']['domain']>, spec: Partial<Vmi['spec']> = {}): Vmi {
  return {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { ...spec, domain: { devices: {}, ...domain } },
  };
}

describe('what the webhook and the node of v1.9.0 made of VMIs', () => {
  test.each(names)('%s', (name) => {
    const context = files.get(`${name}/context.json`) as Context;
    const vmi = files.get(`${name}/vmi.json`) as Vmi;
    const cluster = clusterDefaults(context.hostArchitecture, context.kubeVirtConfiguration);
    const before = structuredClone(vmi);
    const defaulted = applyVmiDefaults(vmi, cluster, context.generatedFirmwareUUID);
    expect(parseJson(renderJson(replacePvcByHostDisk(defaulted)))).toEqual(files.get(`${name}/vmi.launcher.json`));
    expect(applyVmiDefaults(defaulted, cluster, UUID), 'a second time changes nothing').toEqual(defaulted);
    expect(vmi, 'the input is not touched').toEqual(before);
  });
});

describe('rules that no recorded case shows', () => {
  const cluster = clusterDefaults('amd64');
  const defaulted = (vmi: Vmi, configuration: KubeVirtConfiguration = {}): Vmi['spec'] =>
    applyVmiDefaults(vmi, clusterDefaults('amd64', configuration), UUID).spec;

  test('a cluster without bridges on the pod network refuses a VMI that names no network', () => {
    const network = { permitBridgeInterfaceOnPodNetwork: false };
    expect(() => defaulted(vmiWith({}), { network })).toThrow('Bridge interface is not enabled in kubevirt-config');
    expect(defaulted(vmiWith({ devices: { autoattachPodInterface: false } }), { network }).networks).toBeUndefined();
  });

  test("a cluster's machine type is that of every architecture, and goes before those of each", () => {
    const architectureConfiguration = { amd64: { machineType: 'pc-q35-9.0' }, arm64: { machineType: 'virt-9.0' } };
    const machineOn = (architecture: string, configuration: KubeVirtConfiguration): unknown =>
      defaulted(vmiWith({}, { architecture }), configuration).domain.machine?.type;
    expect(machineOn('arm64', { architectureConfiguration })).toBe('virt-9.0');
    expect(machineOn('s390x', { architectureConfiguration })).toBe('s390-ccw-virtio');
    expect(machineOn('amd64', { machineType: 'q35', architectureConfiguration })).toBe('q35');
    expect(machineOn('arm64', { machineType: 'pc' })).toBe('pc');
  });

  test('a cluster may name the architecture of VMIs that name none', () => {
    const spec = defaulted(vmiWith({}), { architectureConfiguration: { defaultArchitecture: 'arm64' } });
    expect([spec.architecture, spec.domain.machine?.type]).toEqual(['arm64', 'virt']);
  });

  test('an empty bus or tray of a disk is as good as none', () => {
    const disks = [
      { name: 'a', disk: { bus: '' as never } },
      { name: 'b', cdrom: { tray: '' as never } },
    ];
    expect(defaulted(vmiWith({ devices: { disks } })).domain.devices.disks).toEqual([
      { name: 'a', disk: { bus: 'sata' } },
      { name: 'b', cdrom: { bus: 'sata', readonly: true, tray: 'closed' } },
    ]);
  });

  test('a cluster may bind the pod network by masquerade', () => {
    const { domain } = defaulted(vmiWith({}), { network: { defaultNetworkInterface: 'masquerade' } });
    expect(domain.devices.interfaces).toEqual([{ name: 'default', masquerade: {} }]);
  });

  test('a cluster CPU request other than 100m is applied unless CPUs are dedicated', () => {
    const configuration = { cpuRequest: '250m' };
    expect(defaulted(vmiWith({}), configuration).domain.resources).toEqual({ requests: { cpu: '250m' } });
    const dedicated = vmiWith({ cpu: { cores: 2, dedicatedCpuPlacement: true } });
    expect(defaulted(dedicated, configuration).domain.resources).toEqual({});
  });

  test('hot-pluggable sockets stop at 512 vCPUs, but never below the sockets in use', () => {
    expect(defaulted(vmiWith({ cpu: { sockets: 40, cores: 8, threads: 1 } })).domain.cpu?.maxSockets).toBe(64);
    expect(defaulted(vmiWith({ cpu: { sockets: 100, cores: 8, threads: 1 } })).domain.cpu?.maxSockets).toBe(100);
  });

  test.each([
    ['realtime', { cpu: { realtime: {} } }],
    ['NUMA passthrough', { cpu: { numa: { guestMappingPassthrough: {} } } }],
    ['an encrypted guest', { launchSecurity: { sev: {} } }],
    ['less than 1 GiB', { memory: { guest: '512Mi' } }],
    ['memory that is no multiple of 2 MiB', { memory: { guest: '1025Mi' } }],
  ])('%s gets no room for more memory', (_why, domain) => {
    expect(defaulted(vmiWith({ memory: { guest: '2Gi' }, ...domain })).domain.memory?.maxGuest).toBeUndefined();
  });

  test('a Hyper-V feature whose need is refused is left to the validation', () => {
    const spec = defaulted(vmiWith({ features: { hyperv: { ipi: {}, vpindex: { enabled: false } } } }));
    expect(spec.domain.features?.hyperv?.vpindex).toEqual({ enabled: false });
  });

  test('evmcs requires the CPU feature vmx, whatever the VMI said of it', () => {
    const spec = defaulted(
      vmiWith({ features: { hyperv: { evmcs: {} } }, cpu: { features: [{ name: 'vmx', policy: 'optional' }] } }),
    );
    expect(spec.domain.cpu?.features).toEqual([{ name: 'vmx', policy: 'require' }]);
    expect(spec.domain.features?.hyperv?.vapic).toEqual({ enabled: true });
  });

  test('guest memory falls back to the huge page size', () => {
    expect(defaulted(vmiWith({ memory: { hugepages: { pageSize: '1Gi' } } })).domain.memory?.guest).toBe('1Gi');
  });

  test('fields that nobody knows are kept', () => {
    const vmi = { ...vmiWith({}), future: { field: 1 } };
    expect(applyVmiDefaults(vmi, cluster, UUID)).toHaveProperty('future', { field: 1 });
  });
});
