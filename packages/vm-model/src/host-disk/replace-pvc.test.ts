import { describe, expect, test } from 'vitest';
import { readBundle } from '../testing/bundle.ts';
import type { Vmi } from '../vmi/vmi.ts';
import { replacePvcByHostDisk } from './replace-pvc.ts';

interface Input {
  readonly title: string;
  readonly replace: boolean;
  readonly vmi: Vmi;
}

interface Output {
  readonly volumes?: unknown;
  readonly replaceError?: string;
}

const files = readBundle('host-disk');
const cases = files
  .filter(({ path, json }) => path.endsWith('/input.json') && (json as Input).replace)
  .map(({ path, json }) => {
    const output = files.find((file) => file.path === path.replace('input', 'output'))?.json as Output;
    return [(json as Input).title, json as Input, output] as const;
  });

describe('what the node of v1.9.0 made of claims', () => {
  test('covers replacements and refusals', () => {
    expect(cases.length).toBeGreaterThan(5);
  });

  test.each(cases)('%s', (_title, input, output) => {
    const before = structuredClone(input.vmi);
    if (output.replaceError !== undefined) {
      expect(() => replacePvcByHostDisk(input.vmi)).toThrow(output.replaceError);
      return;
    }
    expect(replacePvcByHostDisk(input.vmi).spec.volumes).toEqual(output.volumes);
    expect(input.vmi, 'the input is not touched').toEqual(before);
  });
});

test('FM-4.10 a status write never carries the replaced claims: the original object stays as it was', () => {
  const vmi: Vmi = {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { domain: { devices: {} }, volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'a' } }] },
    status: { volumeStatus: [{ name: 'a', target: '', persistentVolumeClaimInfo: { capacity: { storage: '1Gi' } } }] },
  };
  Object.freeze(vmi.spec.volumes?.[0]);
  expect(replacePvcByHostDisk(vmi).spec.volumes?.[0]).not.toHaveProperty('persistentVolumeClaim');
  expect(vmi.spec.volumes?.[0]).toHaveProperty('persistentVolumeClaim');
});
