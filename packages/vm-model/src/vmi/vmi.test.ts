import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VmModelError } from '../errors.ts';
import { readBundle } from '../testing/bundle.ts';
import { findCondition, hasCondition, isConditionTrue, withCondition, withoutCondition } from './conditions.ts';
import { parseVmiJson, renderVmiJson } from './json.ts';
import type { Condition } from './metadata.ts';
import { claimNameOf, findVolume, isHotplugVolume, volumeKind } from './volume-sources.ts';
import type { Volume } from './volumes.ts';

describe('VMI JSON', () => {
  test('every VMI of the reference comes out as it came in', () => {
    const files = readBundle('converter').filter(({ path }) => path.endsWith('/vmi.launcher.json'));
    expect(files.length).toBeGreaterThan(80);
    for (const { json } of files) expect(JSON.parse(renderVmiJson(parseVmiJson(JSON.stringify(json))))).toEqual(json);
  });

  test('unknown fields, their order and 64-bit numbers survive', () => {
    const text =
      '{"metadata":{"name":"a","namespace":"b","uid":"c","zz":{"y":[1,{"x":null}]}},' +
      '"spec":{"domain":{"devices":{"disks":[{"name":"d","later":null}]},"new":"<&>"},' +
      '"terminationGracePeriodSeconds":9223372036854775807,"later":18446744073709551615,"half":0.5},"extra":[]}';
    const vmi = parseVmiJson(text);
    expect(vmi.spec.terminationGracePeriodSeconds).toBe(9223372036854775807n);
    expect(renderVmiJson(vmi)).toBe(text);
  });

  test('null means not set; times that are not set stay null, and so do fields that are not known', () => {
    const text =
      '{"metadata":{"name":"a","namespace":"b","uid":"c","creationTimestamp":null,"labels":null},' +
      '"spec":{"domain":{"devices":null,"cpu":null,"clock":{"utc":null},"later":null},' +
      '"volumes":[{"name":"a","hostDisk":null},null]},"status":{"migrationState":null,' +
      '"conditions":[{"type":"Ready","status":"True","lastProbeTime":null}],"activePods":{"p":null},' +
      '"volumeStatus":[{"name":"v","target":null,"persistentVolumeClaimInfo":null}]}}';
    expect(renderVmiJson(parseVmiJson(text))).toBe(
      '{"metadata":{"name":"a","namespace":"b","uid":"c","creationTimestamp":null},' +
        '"spec":{"domain":{"devices":{},"clock":{},"later":null},"volumes":[{"name":"a"},{"name":""}]},"status":{' +
        '"conditions":[{"type":"Ready","status":"True","lastProbeTime":null}],"activePods":{"p":""},' +
        '"volumeStatus":[{"name":"v","target":""}]}}',
    );
  });

  test('what everyone relies on exists afterwards', () => {
    const vmi = parseVmiJson('{"spec":{"volumes":[{"emptyDisk":{}}]}}');
    expect(vmi.metadata).toEqual({ name: '', namespace: '', uid: '' });
    expect(vmi.spec.domain.devices).toEqual({});
    expect(vmi.spec.volumes).toEqual([{ name: '', emptyDisk: { capacity: '0' } }]);
    expect(vmi.status).toBeUndefined();
  });

  test.each([
    ['[]', 'VirtualMachineInstance: must be an object, not a list'],
    ['5', 'VirtualMachineInstance: must be an object, not 5'],
    ['null', 'VirtualMachineInstance: must be an object, not nothing'],
    ['{"spec":"x"}', 'spec: must be an object, not text'],
    ['{"spec":{"domain":[]}}', 'spec.domain: must be an object, not a list'],
    ['{"status":true}', 'status: must be an object, not true'],
    ['{"metadata":{"labels":{"a":5}}}', 'metadata.labels.a: must be text, not 5'],
    [
      '{"spec":{"domain":{"cpu":{"cores":-1}}}}',
      'spec.domain.cpu.cores: must be a whole number from 0 to 4294967295, not -1',
    ],
    ['{"spec":{"domain":{"cpu":{"cores":1.5}}}}', 'spec.domain.cpu.cores: must be a whole number'],
    ['{"spec":{"domain":{"cpu":{"cores":4294967296}}}}', 'spec.domain.cpu.cores: must be a whole number'],
    [
      '{"spec":{"terminationGracePeriodSeconds":9223372036854775808}}',
      'spec.terminationGracePeriodSeconds: must be a whole number of 64 bits, not 9223372036854775808',
    ],
    ['{"spec":{"domain":{"memory":{"guest":"64Megs"}}}}', 'spec.domain.memory.guest: must be an amount such as 512Mi'],
    ['{"spec":{"domain":{"memory":{"guest":["64Mi"]}}}}', 'not a list'],
    ['{"spec":{"volumes":[{"hostDisk":[]}]}}', 'spec.volumes[0].hostDisk: must be an object, not a list'],
    ['{"spec":{"domain":{"devices":{"disks":{}}}}}', 'spec.domain.devices.disks: must be a list, not an object'],
    ['{"spec":{"domain":{"devices":{"rng":true}}}}', 'spec.domain.devices.rng: must be an object, not true'],
    ['{"spec":{"domain":{"devices":{"rng":[]}}}}', 'spec.domain.devices.rng: must be an object, not a list'],
    [
      '{"status":{"volumeStatus":[{"persistentVolumeClaimInfo":{"capacity":{"storage":true}}}]}}',
      'status.volumeStatus[0].persistentVolumeClaimInfo.capacity.storage: must be an amount',
    ],
    ['{"status":{"migrationState":{"targetCPUSet":["0"]}}}', 'status.migrationState.targetCPUSet[0]: must be a whole'],
    ['{', 'unexpected end of JSON input'],
  ])('%s is refused: %s', (text, message) => {
    expect(() => parseVmiJson(text)).toThrow(VmModelError);
    expect(() => parseVmiJson(text)).toThrow(message);
  });

  test('a secret in the wrong place is not told', () => {
    const text = '{"spec":{"domain":{"devices":{"rng":"hunter2"}}}}';
    expect(() => parseVmiJson(text)).toThrow(/^(?!.*hunter2)spec\.domain\.devices\.rng: must be an object/);
  });

  test('a VMI that nests without end is refused', () => {
    const text = `{"metadata":{},"spec":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`;
    expect(() => parseVmiJson(text)).toThrow('exceeded max depth');
    const allowed = `{"metadata":{},"spec":${'{"a":'.repeat(900)}1${'}'.repeat(900)}}`;
    expect(renderVmiJson(parseVmiJson(allowed))).toContain('"devices":{}');
  });

  test('random JSON gives a VMI or an error with a code', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        try {
          renderVmiJson(parseVmiJson(text));
        } catch (caught) {
          expect(caught).toBeInstanceOf(VmModelError);
        }
      }),
    );
  });
});

describe('conditions', () => {
  const ready: Condition = { type: 'Ready', status: 'True' };
  const paused: Condition = { type: 'Paused', status: 'False', reason: 'No' };

  test('are found by type', () => {
    expect(findCondition([ready, paused], 'Paused')).toBe(paused);
    expect(hasCondition(undefined, 'Ready')).toBe(false);
    expect(isConditionTrue([ready, paused], 'Ready')).toBe(true);
    expect(isConditionTrue([ready, paused], 'Paused')).toBe(false);
  });

  test('are replaced in place or put at the end', () => {
    const next: Condition = { type: 'Ready', status: 'False' };
    expect(withCondition([ready, paused], next)).toEqual([next, paused]);
    expect(withCondition(undefined, next)).toEqual([next]);
  });

  test('are taken away', () => {
    const list = [ready];
    expect(withoutCondition(list, 'Ready')).toEqual([]);
    expect(withoutCondition(list, 'Paused')).toEqual([ready]);
    expect(withoutCondition(undefined, 'Paused')).toEqual([]);
  });
});

describe('volumes', () => {
  test.each<[Volume, string | undefined, string | undefined, boolean]>([
    [{ name: 'v', containerDisk: { image: 'i' } }, 'containerDisk', undefined, false],
    [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }, 'persistentVolumeClaim', 'c', false],
    [{ name: 'v', persistentVolumeClaim: { claimName: 'c', hotpluggable: true } }, 'persistentVolumeClaim', 'c', true],
    [{ name: 'v', dataVolume: { name: 'd', hotpluggable: true } }, 'dataVolume', 'd', true],
    [{ name: 'v', memoryDump: { claimName: 'm', hotpluggable: true } }, 'memoryDump', 'm', true],
    [{ name: 'v' }, undefined, undefined, false],
  ])('%j is of kind %s, claim %s, hotplugged %s', (volume, kind, claim, isHotplug) => {
    expect(volumeKind(volume)).toBe(kind);
    expect(claimNameOf(volume)).toBe(claim);
    expect(isHotplugVolume(volume)).toBe(isHotplug);
  });

  test('are found by name', () => {
    const vmi = parseVmiJson(
      '{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"x"},{"name":"y","emptyDisk":{"capacity":"1Gi"}}]}}',
    );
    expect(findVolume(vmi, 'y')?.emptyDisk?.capacity).toBe('1Gi');
    expect(findVolume(vmi, 'z')).toBeUndefined();
  });
});
