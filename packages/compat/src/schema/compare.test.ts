import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openHistory } from '@virtwire/shared-proto/history';
import { afterAll, describe, expect, test } from 'vitest';

import { compareSchemas, type SchemaBreak } from './compare.ts';
import { schemaOfRelease } from './from-history.ts';
import type { Schema } from './model.ts';
import { readDescriptorSet } from './read-descriptors.ts';
import { readProtoTexts } from './read-protos.ts';

const history = openHistory();
const schemas = new Map(history.releases.map((release) => [release, schemaOfRelease(history, release)]));
const of = (release: string): Schema => schemas.get(release) ?? { rpcs: new Map(), messages: new Map() };
const compare = (next: string, release: string): readonly SchemaBreak[] => compareSchemas(of(next), of(release));
const brief = (breaks: readonly SchemaBreak[]): readonly string[] =>
  breaks.map(({ rule, where }) => `${rule} ${where}`);

/** One release for each schema that differs from the one before it. */
const STEPS = (history.files[0]?.texts ?? []).map(({ since }) => since);
const directory = mkdtempSync(join(tmpdir(), 'virtwire-schema-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** What buf says of the same pair, by the rules that exist on the wire. */
function bufBreaks(next: string, release: string): readonly string[] {
  const files = [next, release].map((tag) => {
    const file = join(directory, `${tag}.binpb`);
    writeFileSync(file, history.descriptorSet(tag));
    return file;
  });
  const use = ['RPC_NO_DELETE', 'FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED', 'FIELD_WIRE_COMPATIBLE_TYPE'];
  const others = ['FIELD_WIRE_COMPATIBLE_CARDINALITY', 'RPC_SAME_REQUEST_TYPE', 'RPC_SAME_RESPONSE_TYPE'];
  const config = JSON.stringify({ version: 'v2', breaking: { use: [...use, ...others] } });
  const [input = '', against = ''] = files;
  const buf = join(import.meta.dirname, '../../../../node_modules/.bin/buf');
  try {
    const args = ['breaking', input, '--against', against, '--config', config, '--against-config', config];
    execFileSync(buf, [...args, '--error-format', 'json'], { env: { ...process.env, HOME: directory }, stdio: 'pipe' });
    return [];
  } catch (caught) {
    const { stdout, status } = caught as { stdout: Buffer; status: number };
    if (status !== 100) throw caught;
    const lines = stdout.toString().trim().split('\n');
    return lines.map((line) => (JSON.parse(line) as { type: string }).type);
  }
}

describe('every release against every other', () => {
  test('nothing breaks from any release of v1 to any newer one', () => {
    const v1 = history.releases.slice(history.releases.indexOf('v1.0.0'));
    for (const [i, release] of v1.entries()) {
      for (const next of v1.slice(i)) expect(compare(next, release), `${release} to ${next}`).toEqual([]);
    }
  });

  test('exactly what a release lacks of another one breaks, for all 21,025 pairs', { timeout: 240_000 }, () => {
    const elements = new Map(
      history.releases.map((release) => {
        const rpcs = history.filesOf(release).flatMap((file) => file.rpcs);
        const shapes = rpcs.map(({ name, shapes: [shape] }) => `${name} ${shape?.request ?? ''}`);
        return [release, new Set([...shapes, ...(history.hasField(release, 'CPU', 'siblings') ? ['siblings'] : [])])];
      }),
    );
    // Messages only ever grew but for CPU.siblings, so that RPCs, their requests and that field tell all.
    const hasTopology = (release: string): boolean => history.hasField(release, 'VirtualMachineOptions', 'topology');
    for (const next of history.releases) {
      for (const release of history.releases) {
        const has = elements.get(next) ?? new Set();
        const lacks = [...(elements.get(release) ?? [])].filter((element) => !has.has(element));
        const isOlder = history.releases.indexOf(next) < history.releases.indexOf(release);
        const fieldsGone = isOlder && compare(next, release).some(({ rule }) => rule.startsWith('FIELD'));
        const expected = lacks.some((element) => element !== 'siblings' || hasTopology(next)) || fieldsGone;
        expect(compare(next, release).length > 0, `${next} against ${release}`).toBe(expected);
      }
    }
  });

  test('buf finds breaks between the same releases', { timeout: 300_000 }, () => {
    for (const [i, release] of STEPS.slice(0, -1).entries()) {
      const next = STEPS[i + 1] ?? '';
      for (const [a, b] of [
        [next, release],
        [release, next],
      ] as const) {
        const ours = compare(a, b);
        const bufs = bufBreaks(a, b);
        expect(ours.length > 0, `${a} against ${b}: ${bufs.join(' ')}`).toBe(bufs.length > 0);
        const deleted = (rules: readonly string[]): number => rules.filter((rule) => rule === 'RPC_NO_DELETE').length;
        expect(deleted(ours.map(({ rule }) => rule)), `${a} against ${b}`).toBe(deleted(bufs));
      }
    }
  });

  test('SignalTargetPodCleanup went away after v0.36 and came back with v0.41', () => {
    const gone = ['RPC_NO_DELETE Cmd/SignalTargetPodCleanup'];
    expect(brief(compare('v0.37.0', 'v0.36.5'))).toEqual(gone);
    expect(brief(compare('v0.40.1', 'v0.36.3'))).toContain(gone[0]);
    expect(brief(compare('v0.41.0', 'v0.40.1'))).toEqual([]);
    expect(brief(compare('v1.9.0', 'v0.36.5'))).toEqual(['RPC_NO_DELETE Cmd/SetVirtualMachineGuestTime']);
    expect(compare('v0.37.0', 'v0.36.5')[0]).toMatchObject({ whom: 'handlers' });
  });

  test('the other breaks of the history: guest time, siblings, the request of a freeze', () => {
    expect(brief(compare('v0.40.0', 'v0.39.2'))).toEqual(['RPC_NO_DELETE Cmd/SetVirtualMachineGuestTime']);
    expect(brief(compare('v0.45.0', 'v0.44.3'))).toEqual(['FIELD_NO_DELETE CPU.siblings']);
    const freeze = compare('v0.47.1', 'v0.46.1');
    expect(brief(freeze)).toEqual(['FIELD_REUSED VMIRequest.options']);
    expect(freeze[0]?.text).toContain('Cmd/FreezeVirtualMachine has another request (VMIRequest, now FreezeRequest)');
    expect(freeze[0]?.text).toContain('skips what the other one sends');
  });
});

describe('a changed schema', () => {
  const texts = history.protoTexts('v1.9.0');
  const changed = (from: string | RegExp, to: string): Schema =>
    readProtoTexts(new Map([...texts].map(([path, text]) => [path, text.replace(from, to)])));

  test('text, descriptors and history say the same', () => {
    for (const release of STEPS) {
      const schema = of(release);
      expect(readProtoTexts(history.protoTexts(release)), release).toEqual(schema);
      expect(readDescriptorSet(history.descriptorSet(release)), release).toEqual(schema);
    }
  });

  test.each<[string, string | RegExp, string, readonly string[]]>([
    ['nothing', 'x'.repeat(99), '', []],
    ['a new field', 'bytes vmiJson = 1;', 'bytes vmiJson = 1; string more = 2;', []],
    ['a new RPC', 'rpc Ping(', 'rpc New(EmptyRequest) returns (Response);\n  rpc Ping(', []],
    ['a dropped RPC', /rpc Ping\(.*;/, '', ['RPC_NO_DELETE Cmd/Ping']],
    [
      'a dropped field',
      /uint32 MemBalloonStatsPeriod = 2;/,
      '',
      ['FIELD_NO_DELETE VirtualMachineOptions.MemBalloonStatsPeriod'],
    ],
    ['a dropped field with its number reserved', /uint32 MemBalloonStatsPeriod = 2;/, 'reserved 2;', []],
    [
      'a dropped field that old launchers need',
      /map<string, DiskInfo> DisksInfo = 5;/,
      'reserved 5;',
      ['FIELD_NEEDED VirtualMachineOptions.DisksInfo'],
    ],
    ['a reused number', 'string dumpPath = 2;', 'bool compress = 2;', ['FIELD_REUSED MemoryDumpRequest.dumpPath']],
    ['a renumbered field', 'string dumpPath = 2;', 'string dumpPath = 3;', ['FIELD_NEEDED MemoryDumpRequest.dumpPath']],
    [
      'another type',
      'int32 timeoutSeconds = 4;',
      'string timeoutSeconds = 4;',
      ['FIELD_WIRE_COMPATIBLE_TYPE ExecRequest.timeoutSeconds'],
    ],
    ['a type of the same kind', 'int32 timeoutSeconds = 4;', 'int64 timeoutSeconds = 4;', []],
    [
      'a list',
      'string domainName = 1;',
      'repeated string domainName = 1;',
      ['FIELD_WIRE_COMPATIBLE_CARDINALITY ExecRequest.domainName'],
    ],
    ['a key of the topology', 'numa_cells', 'numaCells', ['JSON_KEY_RENAMED Topology.numa_cells']],
    [
      'a key below the topology',
      'uint32 id = 1;\n  repeated uint32 siblings',
      'uint32 cpu = 1;\n  repeated uint32 siblings',
      ['JSON_KEY_RENAMED CPU.id'],
    ],
    [
      'a oneof',
      'string dumpPath = 2;',
      'oneof where { string dumpPath = 2; }',
      ['FIELD_SAME_ONEOF MemoryDumpRequest.dumpPath'],
    ],
    ['an optional field', 'string dumpPath = 2;', 'optional string dumpPath = 2;', []],
    [
      'a stream',
      'rpc Ping(EmptyRequest) returns (Response)',
      'rpc Ping(EmptyRequest) returns (stream Response)',
      ['RPC_SAME_STREAMING Cmd/Ping'],
    ],
    ['a dropped notification', /rpc HandleK8sEvent\(.*;/, '', ['RPC_NO_DELETE Notify/HandleK8sEvent']],
  ])('%s', (_title, from, to, expected) => {
    expect(brief(compareSchemas(changed(from, to), of('v1.9.0')))).toEqual(expected);
  });

  test('who notices: the side that reads what has gone, or calls what has gone', () => {
    const whom = (from: string | RegExp): string | undefined =>
      compareSchemas(changed(from, ''), of('v1.9.0'))[0]?.whom;
    expect(whom(/string version = 2;/)).toBe('handlers');
    expect(whom(/string dumpPath = 2;/)).toBe('launchers');
    expect(whom(/rpc HandleK8sEvent\(.*;/)).toBe('launchers');
    expect(whom(/bytes domainJSON = 1;/)).toBe('handlers');
  });

  test('a number that an older release used otherwise is found there', () => {
    const schema = readProtoTexts(
      new Map(
        [...history.protoTexts('v0.45.0')].map(([path, text]) => [
          path,
          text.replace('message CPU {', 'message CPU {\n  string cache = 2;'),
        ]),
      ),
    );
    expect(compareSchemas(schema, of('v0.45.0'))).toEqual([]);
    expect(brief(compareSchemas(schema, of('v0.44.3')))).toEqual(['JSON_KEY_RENAMED CPU.siblings']);
  });
});
