import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';

import { emptyDomainSpec, type Vmi } from '@virtwire/vm-model';

import { createDiskWorld } from '../testing/disk-world.ts';
import { configDriveFiles, noCloudFiles } from './cloud-init-image.ts';
import type { CloudInitData } from './cloud-init-source.ts';
import { hostnameOf } from './cloud-init-metadata.ts';
import { readCloudInit } from './cloud-init-source.ts';
import { taggedDevices } from './device-metadata.ts';
import { readHostNodes } from './host-nodes.ts';

const SECRET = '/var/run/kubevirt-private/secret';
const NOTHING = Buffer.alloc(0);
const EMPTY_DRIVE = {
  kind: 'configDrive' as const,
  volume: 'ci',
  userData: NOTHING,
  networkData: NOTHING,
  publicKeys: [],
};

function vmiWith(spec: Partial<Vmi['spec']>, name = 'vm'): Vmi {
  return { metadata: { name, namespace: 'ns', uid: 'u' }, spec: { domain: { devices: {} }, ...spec } };
}

function textsOf(data: CloudInitData | undefined) {
  return { ...data, userData: data?.userData.toString(), networkData: data?.networkData.toString() };
}

describe('the seed', () => {
  test('secrets come before inline data, and the lower-case name first', async () => {
    using world = createDiskWorld({
      files: {
        [`${SECRET}/ci/userdata`]: { content: 'lower' },
        [`${SECRET}/ci/userData`]: { content: 'upper' },
      },
    });
    const source = { secretRef: { name: 's' }, userData: 'inline', networkDataBase64: 'bmV0' };
    const data = await readCloudInit(world.deps, vmiWith({ volumes: [{ name: 'ci', cloudInitNoCloud: source }] }));
    expect(textsOf(data)).toMatchObject({ kind: 'noCloud', userData: 'lower', networkData: 'net' });
  });

  test('a secret that is missing falls back to what else is there', async () => {
    using world = createDiskWorld({});
    const source = { secretRef: { name: 's' }, userData: 'inline' };
    const data = await readCloudInit(world.deps, vmiWith({ volumes: [{ name: 'ci', cloudInitConfigDrive: source }] }));
    expect(textsOf(data)).toMatchObject({ kind: 'configDrive', userData: 'inline' });
  });

  test.each(['noCloud', 'configDrive'] as const)('packed data reach the guest as they are in %s', async (kind) => {
    const packed = gzipSync('#cloud-config');
    const source = { userDataBase64: packed.toString('base64') };
    const volume = { name: 'ci', [kind === 'noCloud' ? 'cloudInitNoCloud' : 'cloudInitConfigDrive']: source };
    using world = createDiskWorld({});
    const vmi = vmiWith({ volumes: [volume] });
    const data = await readCloudInit(world.deps, vmi);
    if (data === undefined) throw new Error('no seed');
    const files = kind === 'noCloud' ? noCloudFiles(vmi, data) : configDriveFiles(vmi, data, []);
    expect(files.get(kind === 'noCloud' ? 'user-data' : 'openstack/latest/user_data')).toEqual(packed);
  });

  test('packed data in a secret reach the guest as they are', async () => {
    const packed = gzipSync('#cloud-config');
    using world = createDiskWorld({ files: { [`${SECRET}/ci/userdata`]: { content: '' } } });
    writeFileSync(join(world.root, SECRET, 'ci/userdata'), packed);
    const source = { secretRef: { name: 's' } };
    const data = await readCloudInit(world.deps, vmiWith({ volumes: [{ name: 'ci', cloudInitNoCloud: source }] }));
    expect(data?.userData).toEqual(packed);
  });

  test('a machine without firmware has a UUID on its config drive too', () => {
    const text = configDriveFiles(vmiWith({}), EMPTY_DRIVE, []).get('openstack/latest/meta_data.json');
    expect((JSON.parse(String(text)) as { uuid: string }).uuid).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('keys of several credentials are numbered through, hidden and empty entries left out', async () => {
    using world = createDiskWorld({
      files: {
        [`${SECRET}/a-access-cred/one`]: { content: 'k1' },
        [`${SECRET}/a-access-cred/..data/x`]: { content: 'no' },
        [`${SECRET}/a-access-cred/empty`]: { content: '' },
        [`${SECRET}/b-access-cred/two`]: { content: 'k2\n' },
      },
    });
    const accessCredentials = ['a', 'b'].map((secretName) => ({
      sshPublicKey: { source: { secret: { secretName } }, propagationMethod: { noCloud: {} } },
    }));
    const volumes = [{ name: 'ci', cloudInitNoCloud: { userData: 'x' } }];
    const data = await readCloudInit(world.deps, vmiWith({ volumes, accessCredentials }));
    expect(data?.publicKeys).toEqual(['k1', 'k2\n']);
    if (data === undefined) return;
    const metadata = JSON.parse(String(noCloudFiles(vmiWith({}), data).get('meta-data'))) as Record<string, unknown>;
    expect(metadata['public-keys']).toEqual({ '0': 'k1', '1': 'k2\n' });
    expect(metadata['instance-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  test.each([
    ['the name up to its first dot', vmiWith({}, 'web.example'), 'web'],
    ['at most 63 characters', vmiWith({}, 'a'.repeat(70)), 'a'.repeat(63)],
    ['what the spec says', vmiWith({ hostname: 'other' }), 'other'],
  ])('the host name is %s', (_title, vmi, expected) => {
    expect(hostnameOf(vmi)).toBe(expected);
  });
});

describe('tagged devices', () => {
  const vmi = vmiWith({
    domain: {
      devices: {
        interfaces: [
          { name: 'a', masquerade: {}, tag: 'front' },
          { name: 'gone', bridge: {}, tag: 'lost' },
          { name: 's', sriov: {}, tag: 'fast', macAddress: '02:00:00:00:00:01' },
          { name: 'b', masquerade: {}, tag: 'back' },
        ],
        gpus: [{ name: 'g', deviceName: 'v/g', tag: 'compute' }],
      },
    },
  });
  const address = (bus: string): object => ({ Type: 'pci', Domain: '0x0000', Bus: bus, Slot: '0x00', Function: '0x0' });
  const defined = {
    ...emptyDomainSpec(),
    Devices: {
      Interfaces: [
        { Alias: { Name: 'a' }, Address: address('0x02'), MAC: { MAC: '02:00:00:aa:bb:01' } },
        { Alias: { Name: 'gone' } },
        { Alias: { Name: 'b' }, Address: address('0x05') },
      ],
      HostDevices: [
        { Alias: { Name: 'sriov-s' }, Address: address('0x03'), Source: { Address: address('0x81') } },
        { Alias: { Name: 'gpu-g' }, Address: address('0x04') },
      ],
    },
  };

  test("are named by their addresses in the domain's order; one without an address is left out", () => {
    const devices = taggedDevices(vmi, defined, new Map());
    expect(devices).toEqual([
      { type: 'nic', bus: 'pci', address: '0000:02:00.0', mac: '02:00:00:aa:bb:01', tags: ['front'] },
      { type: 'nic', bus: 'pci', address: '0000:05:00.0', tags: ['back'] },
      { type: 'nic', bus: 'pci', address: '0000:03:00.0', tags: ['fast'] },
      { type: 'hostdev', bus: 'pci', address: '0000:04:00.0', tags: ['compute'] },
    ]);
    const metadata = configDriveFiles(vmi, EMPTY_DRIVE, devices).get('openstack/latest/meta_data.json');
    expect((JSON.parse(String(metadata)) as { devices: unknown[] }).devices).toEqual(devices);
  });

  const pinned = { ...defined, CPUTune: { VCPUPin: [0, 1, 2].map((VCPU) => ({ VCPU, CPUSet: String(VCPU + 4) })) } };
  const onNode = (node: string) => {
    const sysDir = mkdtempSync(join(tmpdir(), 'vw-sys-'));
    const files = { 'bus/pci/devices/0000:81:00.0/numa_node': node, 'bus/node/devices/node1/cpulist': '5-9' };
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(sysDir, path, '..'), { recursive: true });
      writeFileSync(join(sysDir, path), `${text}\n`);
    }
    return { sysDir, [Symbol.dispose]: () => rmSync(sysDir, { recursive: true }) };
  };

  test.each<[string, object, string, object]>([
    ['vCPUs that run beside it', { dedicatedCpuPlacement: true }, '1', { alignedCPUs: [1, 2] }],
    ['its node, where the guest sees the nodes', { numa: { guestMappingPassthrough: {} } }, '1', { numaNode: 1 }],
    ['no node that the host does not know', { numa: { guestMappingPassthrough: {} } }, '-1', {}],
    ['nothing where CPUs are shared', {}, '1', {}],
  ])('a device on the host is told with %s', async (_what, cpu, node, expected) => {
    using host = onNode(node);
    const placed = { ...vmi, spec: { ...vmi.spec, domain: { ...vmi.spec.domain, cpu } } };
    const devices = taggedDevices(placed, pinned, await readHostNodes(placed, pinned, host.sysDir));
    const fast = { type: 'nic', bus: 'pci', address: '0000:03:00.0', tags: ['fast'] };
    expect(devices.find(({ tags }) => tags[0] === 'fast')).toEqual({ ...fast, ...expected });
  });
});
