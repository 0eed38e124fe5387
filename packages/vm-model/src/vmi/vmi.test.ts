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
      '{"metadata":{"name":"a","zz":{"y":[1,{"x":null}]}},"spec":{"domain":{"devices":{},"new":"<&>"},' +
      '"terminationGracePeriodSeconds":9223372036854775807,"later":18446744073709551615,"half":0.5},"extra":[]}';
    const vmi = parseVmiJson(text);
    expect(vmi.spec.terminationGracePeriodSeconds).toBe(9223372036854775807n);
    expect(renderVmiJson(vmi)).toBe(text);
  });

  test('null in the spec means not set; elsewhere it stays', () => {
    const text =
      '{"metadata":{"creationTimestamp":null},"spec":{"domain":{"devices":null,"cpu":null,"clock":{"utc":null}},' +
      '"volumes":[{"name":"a","hostDisk":null}]},"status":{"conditions":[{"type":"Ready","lastProbeTime":null}]}}';
    expect(renderVmiJson(parseVmiJson(text))).toBe(
      '{"metadata":{"creationTimestamp":null},"spec":{"domain":{"devices":{},"clock":{}},' +
        '"volumes":[{"name":"a"}]},"status":{"conditions":[{"type":"Ready","lastProbeTime":null}]}}',
    );
  });

  test('what everyone relies on exists afterwards', () => {
    const vmi = parseVmiJson('{"metadata":{"name":"a"},"spec":{}}');
    expect(vmi.spec.domain.devices).toEqual({});
  });

  test.each([
    ['[]', 'VirtualMachineInstance must be an object, not a list'],
    ['5', 'VirtualMachineInstance must be an object, not number'],
    ['{"spec":"x"}', 'spec must be an object, not string'],
    ['{"spec":{"domain":[]}}', 'spec.domain must be an object, not a list'],
    ['{"status":true}', 'status must be an object, not boolean'],
  ])('%s is refused: %s', (text, message) => {
    expect(() => parseVmiJson(text)).toThrow(new VmModelError('InvalidJson', message));
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
