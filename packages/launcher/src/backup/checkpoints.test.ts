import { createLogger } from '@virtwire/telemetry';
import { emptyDomainSpec } from '@virtwire/vm-model';
import type { DomainDisk, DomainSpec, Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { parseBlockNodes } from './block-nodes.ts';
import type { CheckpointDeps } from './checkpoints.ts';
import { redefineCheckpoint } from './checkpoints.ts';

const vmi = { metadata: { namespace: 'ns', name: 'vm' } } as Vmi;
const ref = { name: 'ns_vm', uuid: 'u', id: 1 };
const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const checkpoint = { name: 'c1', creationTime: '2000-01-01T10:20:30Z', volumes: null };

const disk = (target: string, file: string): DomainDisk => ({
  Source: { File: file, DataStore: { Source: { File: '/data' } } },
  Target: { Device: target },
});
const spec: DomainSpec = {
  ...emptyDomainSpec(),
  Devices: { ...emptyDomainSpec().Devices, Disks: [disk('vda', '/a.qcow2'), disk('vdb', '/b.qcow2')] },
};
const nodes = (...files: string[]): string =>
  JSON.stringify({ return: files.map((file) => ({ file, 'dirty-bitmaps': [{ name: 'c1' }] })) });

function scripted(libvirt: Partial<CheckpointDeps['libvirt']>, told: string[] = []): CheckpointDeps {
  return {
    libvirt: {
      lookupDomainByName: () => Promise.resolve(ref),
      getXml: () => Promise.resolve(''),
      monitorCommand: () => Promise.resolve(nodes('/b.qcow2')),
      createCheckpoint: (_domain, xml, flags) => {
        told.push(`${flags} ${xml}`);
        return Promise.resolve();
      },
      ...libvirt,
    },
    parseSpec: () => spec,
  };
}

test('libvirt is told of the disks that have the bitmap, and when it was made', async () => {
  const told: string[] = [];
  expect(await redefineCheckpoint(scripted({}, told), vmi, checkpoint, log)).toBeUndefined();
  expect(told).toEqual([
    '5 <domaincheckpoint><name>c1</name><disks><disk name="vdb" checkpoint="bitmap"></disk></disks>' +
      '<creationTime>946722030</creationTime></domaincheckpoint>',
  ]);
  await redefineCheckpoint(scripted({}, told), vmi, { ...checkpoint, creationTime: null }, log);
  expect(told[1]).not.toContain('creationTime');
});

test.each([
  [102, true],
  [103, true],
  [109, true],
  [38, false],
])('libvirt error %i: invalid %s', async (code, isInvalid) => {
  const refusing = scripted({ createCheckpoint: () => Promise.reject(new LibvirtCallError(code, 10, 'no')) });
  expect(await redefineCheckpoint(refusing, vmi, checkpoint, log)).toEqual({
    message: `failed to redefine checkpoint c1: virError(Code=${code}, Domain=10, Message='no')`,
    isInvalid,
  });
});

test('what may pass says what was tried', async () => {
  const failing = () => Promise.reject(new LibvirtCallError(38, 10, 'no'));
  const error = "virError(Code=38, Domain=10, Message='no')";
  const run = (libvirt: Partial<CheckpointDeps['libvirt']>) =>
    redefineCheckpoint(scripted(libvirt), vmi, checkpoint, log);
  await expect(run({ lookupDomainByName: failing })).rejects.toThrow(`failed to lookup domain ns_vm: ${error}`);
  await expect(run({ getXml: failing })).rejects.toThrow(`failed to get domain disks: ${error}`);
  const garbage = run({ monitorCommand: () => Promise.resolve('{') });
  await expect(garbage).rejects.toThrow('failed to query bitmaps: failed to parse QMP response: unexpected end');
});

test('answers of a monitor that are not as expected hold no bitmaps', () => {
  for (const reply of ['null', '[]', '{"error":{}}', '{"return":[7,{"file":9},{"file":"/a","dirty-bitmaps":{}}]}']) {
    expect(parseBlockNodes(reply).flatMap(({ bitmaps }) => bitmaps)).toEqual([]);
  }
});
