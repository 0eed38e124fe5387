import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { DomainHostDevice, VmiDomain, VmiSpec } from '@virtwire/vm-model';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { convertWith, vmiWith } from '../testing/conversion.ts';
import { readDeviceClaims, splitJsonStream } from './device-claims.ts';

const UUID = 'aa618089-8b16-4d01-a136-25a0f3c73123';
const PCI = { 'resource.kubernetes.io/pciBusID': { string: '0000:65:0a.3' } };
const MDEV = { mdevUUID: { string: UUID } };
const FILE = 'resourceclaims/pool-claim/gpu/driver.example-metadata.json';
const PCI_SOURCE = { Address: { Type: 'pci', Domain: '0x0000', Bus: '0x65', Slot: '0x0a', Function: '0x3' } };

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-claims-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

interface Wish {
  readonly devices: VmiDomain['devices'];
  readonly spec?: Partial<Omit<VmiSpec, 'domain'>>;
}

describe('devices of resource claims', () => {
  test('a whole device goes in by its PCI address, behind those of device plugins', async () => {
    write(FILE, PCI);
    const plugin = { name: 'p', deviceName: 'vendor/x' };
    const devices = { hostDevices: [claimed('d'), plugin] };
    const environment = { PCI_RESOURCE_VENDOR_X: '0000:01:00.0' };
    const found = await convert({ devices }, environment);
    expect(found.map(({ Alias }) => Alias?.Name)).toEqual(['hostdevice-p', 'dra-hostdevice-d']);
    expect(found[1]).toEqual({
      Type: 'pci',
      Managed: 'no',
      Source: PCI_SOURCE,
      Alias: { Name: 'dra-hostdevice-d', UserDefined: true },
    });
  });

  test.each([
    ['amd64', 'vfio-pci'],
    ['s390x', 'vfio-ap'],
  ])('a mediated device counts as one although it shows a PCI address, on %s as %s', async (architecture, model) => {
    write(FILE, { ...PCI, ...MDEV });
    const [device] = await convert({ devices: { hostDevices: [claimed('d')] }, spec: { architecture } });
    expect(device).toMatchObject({ Type: 'mdev', Mode: 'subsystem', Model: model, Source: { Address: { UUID } } });
  });

  test('a claim made from a template is found under the name that the pod gives it', async () => {
    write('resourceclaimtemplates/claim/gpu/driver.example-metadata.json', MDEV);
    const spec = { resourceClaims: [{ name: 'claim', resourceClaimTemplateName: 't' }] };
    const [gpu] = await convert({ devices: { gpus: [claimed('g')] }, spec });
    expect(gpu?.Alias?.Name).toBe('dra-gpu-g');
  });

  test('the first virtual GPU shows its picture unless one says what it wants', async () => {
    write(FILE, MDEV);
    const plain = await convert({ devices: { gpus: [claimed('a'), claimed('b')] } });
    expect(plain.map(({ Display, RamFB }) => [Display, RamFB])).toEqual([
      ['on', 'on'],
      [undefined, undefined],
    ]);
    const off = { ...claimed('b'), virtualGPUOptions: { display: { enabled: false } } };
    const silent = await convert({ devices: { gpus: [claimed('a'), off] } });
    expect(silent.map(({ Display }) => Display)).toEqual([undefined, undefined]);
  });

  test('a virtual function takes the place that its interface wants', async () => {
    write('resourceclaims/pool-claim/vf/driver.example-metadata.json', PCI);
    const networks = [{ name: 'n', resourceClaim: { claimName: 'claim', requestName: 'vf' } }];
    const interfaces = [{ name: 'n', sriov: {}, pciAddress: '0000:20:00.0', bootOrder: 2 }];
    const [device] = await convert({ devices: { interfaces }, spec: { networks } });
    expect(device).toMatchObject({ Alias: { Name: 'sriov-n' }, Source: PCI_SOURCE, BootOrder: { Order: 2 } });
    expect(device?.Address).toMatchObject({ Bus: '0x20' });
  });

  test('a device that a plugin names is no claimed one, whatever else it carries', async () => {
    const devices = { hostDevices: [{ ...claimed('d'), deviceName: 'vendor/x' }] };
    const found = await convert({ devices }, { PCI_RESOURCE_VENDOR_X: '0000:01:00.0' });
    expect(found.map(({ Alias }) => Alias?.Name)).toEqual(['hostdevice-d']);
  });
});

describe('claims without a usable device', () => {
  const problem = async (wish: Wish = { devices: { gpus: [claimed('g')] } }): Promise<string> =>
    convert(wish).then(
      () => 'nothing wrong',
      (error: unknown) => (error as Error).message,
    );
  const start = 'failed to create DRA GPU host-devices: GPU g has no mdevUUID or pciBusID in metadata for ';

  test('no attribute that identifies it', async () => {
    write(FILE, {});
    expect(await problem()).toBe(
      `${start}claim claim request gpu (mdev: mdevUUID not found for claim "claim" request "gpu", ` +
        'pci: pciBusID not found for claim "claim" request "gpu")',
    );
  });

  test('no file', async () => {
    const reason = `failed to read metadata for claim "pool-claim" request "gpu": no files matching ${root}/resourceclaims/pool-claim/gpu/*-metadata.json`;
    expect(await problem()).toBe(`${start}claim claim request gpu (mdev: ${reason}, pci: ${reason})`);
  });

  test('names that lead out of the directory find nothing', async () => {
    write('outside-metadata.json', PCI);
    const spec = { resourceClaims: [{ name: 'claim', resourceClaimName: '..' }] };
    const gpus = [{ name: 'g', claimName: 'claim', requestName: '..' }];
    expect(await problem({ devices: { gpus }, spec })).toContain('no files matching');
  });

  test('a name and no request', async () => {
    expect(await problem({ devices: { hostDevices: [{ name: 'd', claimName: 'claim' }] } })).toBe(
      'failed to create dra generic host-devices: HostDevice d has incomplete ClaimRequest',
    );
  });

  test('a claim that the VMI does not list', async () => {
    expect(await problem({ devices: { gpus: [claimed('g')] }, spec: { resourceClaims: [] } })).toContain(
      'metadata not found for claim "claim"',
    );
  });

  test('a network whose claim got nothing with a PCI address', async () => {
    write('resourceclaims/pool-claim/vf/driver.example-metadata.json', MDEV);
    const networks = [{ name: 'n', resourceClaim: { claimName: 'claim', requestName: 'vf' } }];
    expect(await problem({ devices: { interfaces: [{ name: 'n', sriov: {} }] }, spec: { networks } })).toBe(
      'failed to create hostdevice for n: pciBusID not found for claim "claim" request "vf"',
    );
  });

  test.each([
    ['', 'no metadata objects found in stream'],
    ['{"apiVersion":"v9"}', 'no compatible metadata version found in stream (unknown versions: v9)'],
    ['{}', 'decode metadata object: missing apiVersion'],
    ['{"a":', 'decode metadata object: '],
    [metadata([{ name: 'other' }]), 'request "gpu" not found in metadata for claim "c" (available requests: [other])'],
    [metadata([{ name: 'gpu', devices: [] }]), 'request "gpu" has no devices'],
    [metadata([{ name: 'gpu', devices: [{}, {}] }]), 'request "gpu" has 2 devices but KubeVirt only supports'],
  ])('metadata %j', async (text, reason) => {
    writeText(FILE, text);
    expect(await problem()).toContain(reason);
  });

  test('two drivers for one request', async () => {
    write(FILE, PCI);
    write('resourceclaims/pool-claim/gpu/other-metadata.json', PCI);
    expect(await problem()).toContain('found 2 metadata files for claim "pool-claim" request "gpu"');
  });
});

test('versions that nobody here knows are skipped', async () => {
  writeText(FILE, `{"apiVersion":"v9","odd":"}{\\"" }\n${metadata([{ name: 'gpu', devices: [{ attributes: PCI }] }])}`);
  const [device] = await convert({ devices: { hostDevices: [claimed('d')] } });
  expect(device?.Type).toBe('pci');
});

test('objects that follow each other are split, strings and nesting respected', () => {
  expect(splitJsonStream('{"a":{"b":"}"}} {"c":"\\"{"}\n')).toEqual(['{"a":{"b":"}"}}', ' {"c":"\\"{"}']);
  expect(splitJsonStream('{"a":"')).toEqual(['{"a":"']);
  expect(splitJsonStream('}{}')).toEqual(['}{}']);
});

function claimed(name: string): { name: string; claimName: string; requestName: string } {
  return { name, claimName: 'claim', requestName: 'gpu' };
}

async function convert(
  { devices, spec }: Wish,
  environment: Record<string, string> = {},
): Promise<readonly DomainHostDevice[]> {
  const change = {
    domain: { devices },
    spec: { resourceClaims: [{ name: 'claim', resourceClaimName: 'pool-claim' }], ...spec },
    context: { env: environment },
  };
  const deviceClaims = await readDeviceClaims(vmiWith(change), root);
  return convertWith({ ...change, circumstances: { deviceClaims } }).Devices.HostDevices ?? [];
}

function metadata(requests: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: 'metadata.resource.k8s.io/v1alpha1', metadata: { name: 'c' }, requests });
}

function write(path: string, attributes: object): void {
  const request = path.split('/')[2] ?? '';
  writeText(path, metadata([{ name: request, devices: [{ attributes }] }]));
}

function writeText(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
