import { describe, expect, test } from 'vitest';

import { emptyDomainSpec, type Vmi } from '@virtwire/vm-model';

import { createDiskWorld } from '../testing/disk-world.ts';
import { configDriveFiles, noCloudFiles } from './cloud-init-image.ts';
import { hostnameOf } from './cloud-init-metadata.ts';
import { readCloudInit } from './cloud-init-source.ts';
import { taggedDevices } from './device-metadata.ts';

const SECRET = '/var/run/kubevirt-private/secret';

function vmiWith(spec: Partial<Vmi['spec']>, name = 'vm'): Vmi {
  return { metadata: { name, namespace: 'ns', uid: 'u' }, spec: { domain: { devices: {} }, ...spec } };
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
    expect(data).toMatchObject({ kind: 'noCloud', userData: 'lower', networkData: 'net' });
  });

  test('a secret that is missing falls back to what else is there', async () => {
    using world = createDiskWorld({});
    const source = { secretRef: { name: 's' }, userData: 'inline' };
    const data = await readCloudInit(world.deps, vmiWith({ volumes: [{ name: 'ci', cloudInitConfigDrive: source }] }));
    expect(data).toMatchObject({ kind: 'configDrive', userData: 'inline' });
  });

  test('keys of several credentials are numbered through, hidden entries left out', async () => {
    using world = createDiskWorld({
      files: {
        [`${SECRET}/a-access-cred/one`]: { content: 'k1' },
        [`${SECRET}/a-access-cred/..data/x`]: { content: 'no' },
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
    const metadata = JSON.parse(noCloudFiles(vmiWith({}), data).get('meta-data') ?? '') as Record<string, unknown>;
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
      ],
      HostDevices: [
        { Alias: { Name: 'sriov-s' }, Address: address('0x03') },
        { Alias: { Name: 'gpu-g' }, Address: address('0x04') },
      ],
    },
  };

  test('are named by their addresses; one without an address is left out', () => {
    expect(taggedDevices(vmi, defined)).toEqual([
      { type: 'nic', bus: 'pci', address: '0000:02:00.0', mac: '02:00:00:aa:bb:01', tags: ['front'] },
      { type: 'nic', bus: 'pci', address: '0000:03:00.0', mac: '02:00:00:00:00:01', tags: ['fast'] },
      { type: 'hostdev', bus: 'pci', address: '0000:04:00.0', tags: ['compute'] },
    ]);
    const data = { kind: 'configDrive' as const, volume: 'ci', userData: 'x', networkData: '', publicKeys: [] };
    const metadata = configDriveFiles(vmi, data, defined).get('openstack/latest/meta_data.json') ?? '';
    expect((JSON.parse(metadata) as { devices: unknown[] }).devices).toHaveLength(3);
  });
});
