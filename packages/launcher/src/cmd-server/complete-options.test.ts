import { cmdV1 } from '@virtwire/shared-proto';
import { parseVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { completeOptions } from './complete-options.ts';

const vmi = parseVmiJson(
  JSON.stringify({
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: {
      domain: {
        devices: {
          interfaces: [
            { name: 'default', masquerade: {} },
            { name: 'lan', bridge: {} },
            { name: 'vf', sriov: {} },
            { name: 'other', binding: { name: 'passt' } },
          ],
        },
      },
    },
  }),
);

test('a v1.0 handler sends no attachments: bridge and masquerade interfaces get a tap', () => {
  const options = cmdV1.VirtualMachineOptions.fromPartial({ MemBalloonStatsPeriod: 10 });
  const { interfaceDomainAttachment, MemBalloonStatsPeriod } = completeOptions(vmi, options);
  expect(interfaceDomainAttachment).toEqual({ default: 'tap', lan: 'tap' });
  expect(MemBalloonStatsPeriod).toBe(10);
});

test('what a handler does send counts', () => {
  const sent = new Map([
    ['default', 'managedTap'],
    ['other', 'managedTap'],
  ]);
  const options = cmdV1.VirtualMachineOptions.fromPartial({ interfaceDomainAttachment: sent });
  expect(completeOptions(vmi, options).interfaceDomainAttachment).toEqual({
    default: 'managedTap',
    lan: 'tap',
    other: 'managedTap',
  });
});

test('the topology of the wire becomes that of the conversion', () => {
  const options = cmdV1.VirtualMachineOptions.fromPartial({
    topology: { numa_cells: [{ id: 1, cpus: [{ id: 4, siblings: [4, 5] }] }] },
  });
  const [cell] = completeOptions(vmi, options).topology?.numaCells ?? [];
  expect(cell).toMatchObject({ id: 1, cpus: [{ id: 4, siblings: [4, 5] }] });
});

test('everything else that a handler sends reaches the conversion as it is', () => {
  const sent = {
    VirtualMachineSMBios: { manufacturer: 'm', product: 'p', version: 'v', sku: 's', family: 'f' },
    PreallocatedVolumes: ['a', 'b'],
    clusterConfig: { ExpandDisksEnabled: true, BochsDisplayForEFIGuests: true },
    GraceHostDeviceAliases: ['gpu'],
  };
  expect(completeOptions(vmi, cmdV1.VirtualMachineOptions.fromPartial(sent))).toMatchObject(sent);
});
