import { describe, expect, test } from 'vitest';
import { readBundle } from '../testing/bundle.ts';
import { parseVmiJson } from './json.ts';
import { unknownSpecFields } from './unknown-fields.ts';

const unknown = (spec: unknown): readonly string[] => unknownSpecFields(parseVmiJson(JSON.stringify({ spec })));

describe('fields of a spec that KubeVirt does not have', () => {
  test('the VMIs of the reference have none', () => {
    const files = readBundle('converter').filter(({ path }) => path.endsWith('/vmi.launcher.json'));
    expect(files.length).toBeGreaterThan(80);
    for (const { path, json } of files) {
      expect([path, ...unknownSpecFields(parseVmiJson(JSON.stringify(json)))]).toEqual([path]);
    }
  });

  test('mistyped ones are named wherever they stand', () => {
    expect(
      unknown({
        domian: {},
        domain: { device: {}, devices: { disks: [{ name: 'a' }, { name: 'b', Disk: {} }] }, cpu: { core: 1 } },
        volumes: [{ name: 'a', emptydisk: { capacity: '1Mi' } }],
      }),
    ).toEqual([
      'spec.domian',
      'spec.domain.device',
      'spec.domain.devices.disks[1].Disk',
      'spec.domain.cpu.core',
      'spec.volumes[0].emptydisk',
    ]);
  });

  test('keys of maps and of what others define are no fields', () => {
    expect(
      unknown({
        nodeSelector: { anything: 'x' },
        affinity: { nodeAffinity: {} },
        domain: { resources: { requests: { 'example.com/x': '1' } }, devices: { rng: { later: 1 } } },
      }),
    ).toEqual([]);
  });

  test('only so many are named', () => {
    expect(unknown(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`f${i}`, i])))).toHaveLength(100);
  });
});
