import { describe, expect, test } from 'vitest';

import { VirtualMachineOptions } from '../gen/kubevirt/cmd/v1/cmd.ts';
import { type FieldHistory, openHistory } from '../history/index.ts';
import { ADDITIONS } from './additions.ts';
import { adaptOptions, needsAcpiTableObject, needsDisksInfo } from './adapt.ts';
import { CONTENT_RULES, type ContentRule } from './content-rules.ts';
import { decideEra, NO_FACTS } from './decide-era.ts';
import { ANY_ERA, type Era, renderEra } from './era.ts';
import { renderRules, rulesAsJson } from './render.ts';
import { RPC_RULES } from './rpc-rules.ts';
import { erasOfOptions, erasOfUserAgent } from './signs.ts';
import { followedRules } from './users.ts';

const line = (since: string, until: string | undefined): Era => ({ since, until });
const V10 = line('v1.0.0', 'v1.1.0');
const V15 = line('v1.5.0', 'v1.6.0');
const V18 = line('v1.8.0', 'v1.9.0');
const V19 = line('v1.9.0', undefined);
const DISKS = new Map([['cd', { format: 'qcow2', virtualSize: 1n << 40n }]]);

describe('options', () => {
  test.each<[string, Era, boolean, boolean]>([
    ['v1.0', V10, true, true],
    ['v1.5', V15, true, true],
    ['v1.8', V18, false, true],
    ['v1.9', V19, false, false],
    ['a launcher of any release', ANY_ERA, true, true],
  ])('for %s', (_title, era, tellsDisks, expands) => {
    const options = VirtualMachineOptions.fromPartial(
      adaptOptions({ clusterConfig: { BochsDisplayForEFIGuests: true } }, era, DISKS),
    );
    expect(options.DisksInfo.size > 0).toBe(tellsDisks);
    expect(needsDisksInfo(era)).toBe(tellsDisks);
    expect(options.ExpandDisksEnabled).toBe(expands);
    expect(options.clusterConfig?.ExpandDisksEnabled).toBe(expands);
    expect(options.clusterConfig?.BochsDisplayForEFIGuests).toBe(true);
    const read = VirtualMachineOptions.decode(VirtualMachineOptions.encode(options).finish());
    expect(read.DisksInfo.get('cd')?.virtualSize).toBe(tellsDisks ? 1n << 40n : undefined);
  });

  test('are not touched for a new launcher', () => {
    const options = { MemBalloonStatsPeriod: 10 };
    expect(adaptOptions(options, V19)).toEqual(options);
  });
});

test.each<[string, Era, boolean]>([
  ['v1.2 to v1.5', line('v1.2.0', 'v1.6.0'), true],
  ['v1.1 or v1.2', line('v1.1.0', 'v1.3.0'), true],
  ['v1.5 or v1.6', line('v1.5.0', 'v1.7.0'), false],
  ['v1.9', V19, false],
  ['unknown', ANY_ERA, false],
])('an ACPI table is one object for a handler of %s: %s', (_title, era, expected) => {
  expect(needsAcpiTableObject(era)).toBe(expected);
});

test.each<[string, object, string]>([
  ['container disks described', { DisksInfo: DISKS }, 'v0.46.0 to before v1.6.0'],
  ['attachments', { interfaceDomainAttachment: new Map([['default', 'tap']]) }, 'v1.1.1 or newer'],
  ['plugins', { pluginsJson: Buffer.from('[]') }, 'v1.9.0 or newer'],
  ['nothing', {}, 'any release'],
])('options with %s tell the age of their handler', (_title, options, expected) => {
  const bounds = erasOfOptions(VirtualMachineOptions.fromPartial(options));
  expect(renderEra(decideEra({ ...NO_FACTS, bounds }))).toBe(expected);
});

test.each<[string | undefined, string]>([
  ['grpc-go/1.48.0', 'before v1.1.1'],
  ['grpc-go/1.56.3', 'v1.1.0 to before v1.3.0'],
  ['grpc-go/1.58.3', 'v1.2.0 to before v1.4.0'],
  ['grpc-go/1.65.0', 'v1.3.0 to before v1.7.0'],
  ['grpc-go/1.75.1', 'v1.6.0 or newer'],
  ['grpc-go/1.79.3', 'v1.7.0 or newer'],
  ['grpc-go/2.1.0', 'v1.7.0 or newer'],
  ['grpc-node-js/1.14.7', 'any release'],
  ['grpc-go/', 'any release'],
  [undefined, 'any release'],
])('the user agent %s tells the age of its sender: %s', (userAgent, expected) => {
  expect(renderEra(decideEra({ ...NO_FACTS, bounds: erasOfUserAgent(userAgent) }))).toBe(expected);
});

describe('the table', () => {
  test('every field that it names exists in the schema', () => {
    const history = openHistory();
    const rules: readonly ContentRule[] = Object.values(CONTENT_RULES);
    for (const { place } of rules) {
      if (place.kind === 'field') expect(history.field(place.message, place.field), place.field).toBeDefined();
    }
  });

  test('every field of an old message that came after v0.59 is in it, with its release', () => {
    const history = openHistory();
    const isLate = (field: FieldHistory): boolean => !history.has(field, 'v0.59.0');
    const fields = history.filesOf('v1.9.0').flatMap((file) => file.messages.flatMap((message) => message.fields));
    // Messages that are new as a whole belong to new RPCs or to a field that is listed.
    const isListed = (field: FieldHistory): boolean =>
      field.message === 'ClusterConfig' || history.has(history.message(field.message) ?? field, 'v0.59.0');
    const late = fields.filter((field) => isLate(field) && isListed(field) && field.name !== 'ExpandDisksEnabled');
    const listed = ADDITIONS.flatMap(({ place, since }) =>
      place.kind === 'field' ? [`${place.message}.${place.field} ${since}`] : [],
    );
    const expected = late.map(({ message, name, presence }) => `${message}.${name} ${presence.at(-1)?.since ?? ''}`);
    expect(listed.toSorted()).toEqual(expected.toSorted());
  });

  test('names for every rule who follows it, or which part will', () => {
    const rules = followedRules();
    expect(rules.filter(({ user }) => user === undefined)).toEqual([]);
    expect(new Set(rules.map(({ rule }) => rule)).size).toBe(rules.length);
    expect(renderRules()).toContain('  followed by: adaptOptions in handler/vmi/adapt-to-launcher.ts');
    expect(renderRules()).toContain("  followed by: later: the handler's REST server");
    expect(renderRules()).not.toContain('followed by: nobody');
  });

  test('is printed whole, for people and for tools', () => {
    const text = renderRules();
    for (const { rpc, effect } of RPC_RULES) {
      expect(text).toContain(`${rpc}  (launchers from`);
      expect(text).toContain(effect);
    }
    for (const { effect, send } of Object.values(CONTENT_RULES)) {
      expect(text).toContain(effect);
      expect(text).toContain(send);
    }
    for (const { effect } of ADDITIONS) expect(text).toContain(effect);
    expect(text).toContain('before v0.50');
    const json = JSON.parse(rulesAsJson()) as { rpcs: unknown[]; contents: unknown[] };
    expect(json.rpcs).toHaveLength(RPC_RULES.length);
    expect(json.contents).toHaveLength(Object.keys(CONTENT_RULES).length);
  });
});
